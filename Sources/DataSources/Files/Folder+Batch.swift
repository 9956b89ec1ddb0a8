import Foundation

/// What becomes of a file.
enum FileChange: Sendable {
  case write(String, Data)
  case remove(String)
}

/// Several files change together, whatever happens in between: their new bytes are written beside them, then a plan of what is to be
/// renamed and removed takes its name, which is the moment of the change, and then the plan is carried out. Whoever finds a plan
/// carries it out first. A crash before leaves files of the folder's own that the next change overwrites.
extension Folder {
  private static let planName = ".plan"
  private static let newPlanName = ".plan.new"
  /// What the first new file is called until it has its name; the others have a number behind it.
  private static let newName = ".new"

  private enum Step: Codable {
    case rename(String, to: String)
    case remove(String)

    var names: [String] {
      switch self {
      case .rename(let name, let other): [name, other]
      case .remove(let name): [name]
      }
    }
  }

  /// Makes changes. The lock for writing is held.
  /// - Parameter together: whether a crash leaves all or none of them. Otherwise the writes are on the disk before anything is removed, and
  ///   a crash may leave what should have been.
  func apply(_ changes: [FileChange], together: Bool) throws {
    let steps = try prepare(changes)
    let planned = together && steps.count > 1
    if planned {
      try create(Folder.newPlanName, JSONEncoder().encode(steps))
      // The names of the new files reach the disk before the plan's does.
      try synchronize()
      try rename(Folder.newPlanName, to: Folder.planName)
      try synchronize()
    }
    try carryOut(steps, planned: planned)
  }

  func hasUnfinishedBatch() throws -> Bool { try contains(Folder.planName) }

  /// Carries out a plan that somebody left. The lock for writing is held.
  func finishBatch() throws {
    guard let plan = try bytes(of: Folder.planName) else { return }
    let steps = try failing("carry out", Folder.planName) { try JSONDecoder().decode([Step].self, from: plan) }
    // Whoever wrote it, it is about files of this folder.
    guard steps.flatMap(\.names).allSatisfy({ !$0.contains("/") && ![".", "..", ""].contains($0) }) else {
      throw DataSourceError(.failed, "\(path(of: Folder.planName)) is no plan of this folder: remove it")
    }
    try carryOut(steps, planned: true)
  }

  private func prepare(_ changes: [FileChange]) throws -> [Step] {
    var steps: [Step] = []
    do {
      for (number, change) in changes.enumerated() {
        switch change {
        case .write(let name, let bytes):
          let new = number == 0 ? Folder.newName : "\(Folder.newName)-\(number)"
          steps.append(.rename(new, to: name))
          try create(new, bytes)
        case .remove(let name):
          steps.append(.remove(name))
        }
      }
    } catch {
      for case .rename(let new, _) in steps { try? unlink(new) }
      throw error
    }
    return steps
  }

  private func carryOut(_ steps: [Step], planned: Bool) throws {
    let renames = steps.filter { if case .rename = $0 { true } else { false } }
    for case .rename(let name, let other) in renames { try rename(name, to: other) }
    if !renames.isEmpty { try synchronize() }
    for case .remove(let name) in steps { try unlink(name) }
    if renames.isEmpty || planned, !steps.isEmpty { try synchronize() }
    // The plan goes last, and before any other change: carried out twice it would do no harm, later it would.
    if planned {
      try unlink(Folder.planName)
      try synchronize()
    }
  }
}
