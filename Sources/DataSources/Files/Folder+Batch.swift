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

  private enum Step: Codable {
    case rename(String, to: String)
    case remove(String)
  }

  /// Makes changes, all or, when it throws before they count, none. The lock for writing is held.
  func apply(_ changes: [FileChange]) throws {
    let steps = try prepare(changes)
    if steps.count > 1 {
      try create(Folder.newPlanName, JSONEncoder().encode(steps))
      // The names of the new files reach the disk before the plan's does.
      try synchronize()
      try rename(Folder.newPlanName, to: Folder.planName)
      try synchronize()
    }
    try carryOut(steps)
  }

  func hasUnfinishedBatch() throws -> Bool { try contains(Folder.planName) }

  /// Carries out a plan that somebody left. The lock for writing is held.
  func finishBatch() throws {
    guard let plan = try bytes(of: Folder.planName) else { return }
    let steps = try failing("carry out", Folder.planName) { try JSONDecoder().decode([Step].self, from: plan) }
    try carryOut(steps)
  }

  private func prepare(_ changes: [FileChange]) throws -> [Step] {
    var steps: [Step] = []
    do {
      for (number, change) in changes.enumerated() {
        switch change {
        case .write(let name, let bytes):
          let new = ".new-\(number)"
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

  private func carryOut(_ steps: [Step]) throws {
    guard !steps.isEmpty else { return }
    for step in steps {
      switch step {
      case .rename(let name, let other): try rename(name, to: other)
      case .remove(let name): try unlink(name)
      }
    }
    try synchronize()
    // The plan goes last, and before any other change: carried out twice it would do no harm, later it would.
    if steps.count > 1 {
      try unlink(Folder.planName)
      try synchronize()
    }
  }
}
