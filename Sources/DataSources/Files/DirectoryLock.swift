import FoundationEssentials
import Platform

/// A change to a file of a directory.
enum FileChange: Sendable {
  case write(String, Data)
  case remove(String)

  var name: String {
    switch self {
    case .write(let name, _), .remove(let name): name
    }
  }
}

/// The lock of a directory while it is held, and with it the right to change files.
///
/// The lock file contains a revision, that of the last change by a data source. From it, other sources learn that the
/// directory has changed, and no revision is used twice.
///
/// Several files change together, whatever happens in between. The new bytes go to files beside them. Then a plan of
/// the renames and removals takes its name, which is the commit. Then the plan is carried out. Anyone who finds a plan
/// carries it out first. A crash before the commit leaves files that the next change overwrites.
///
/// A plan is written only if nothing is in its way. If a step fails nevertheless, the change is undone. If that is
/// impossible, the steps that failed stay in the plan, and block their files until they succeed.
struct DirectoryLock {
  private let directory: SharedDirectory
  /// Nil for a directory that this process can't change and nobody else has changed.
  private let file: SharedFileLock?
  /// The steps of the plan that can't be carried out.
  private var blockedSteps: [BlockedStep] = []

  init(_ directory: SharedDirectory, file: SharedFileLock?) {
    self.directory = directory
    self.file = file
  }

  // MARK: - Revision

  /// How the lock file of a data source begins.
  static let mark = Array("revision ".utf8)

  /// Returns the revision; 0 if there has been no change, or if a server wrote the lock file last, which uses the same
  /// file (`directory-format.md`, §1).
  func revision() throws -> UInt64 {
    let fields = String(decoding: try contents(), as: UTF8.self).split(whereSeparator: \.isWhitespace)
    return fields.count == 2 && fields[0] == "revision" ? UInt64(fields[1]) ?? 0 : 0
  }

  /// Writes the revision of a change, before the change. It needn't survive a crash of the machine, because no process
  /// that knows the directory does.
  func setRevision(_ revision: UInt64) throws {
    guard let file else { return }
    try directory.attempting("write", SharedDirectory.lockName) {
      try file.write(Self.mark + Array("\(revision)\n".utf8))
    }
  }

  /// Writes a first revision, so that other sources recognize the directory.
  func markDirectory() throws {
    if try contents().isEmpty { try setRevision(0) }
  }

  private func contents() throws -> [UInt8] {
    guard let file else { return [] }
    return try directory.attempting("read", SharedDirectory.lockName) { try file.contents() }
  }

  // MARK: - Unfinished changes

  func hasUnfinishedChange() throws -> Bool { try directory.contains(DirectoryPlan.name) }

  /// Carries out a plan that a crash left behind, as far as possible.
  mutating func completeUnfinishedChange() throws {
    guard let plan = try DirectoryPlan(in: directory) else { return }
    blockedSteps = try plan.carryOut(in: directory)
    try DirectoryPlan(steps: blockedSteps.map(\.step)).replace(plan, in: directory)
  }

  /// Regards all steps of a plan as blocked, because this process can't change the directory.
  mutating func blockUnfinishedChange() throws {
    let reason = "this process can't change the directory"
    blockedSteps = try DirectoryPlan(in: directory)?.steps.map { BlockedStep(step: $0, reason: reason) } ?? []
  }

  /// The files that a blocked step of an unfinished change should create, replace or remove.
  var blockedNames: [String] { blockedSteps.map(\.step.target) }

  /// Returns the error of calls that need one of these files.
  func blockedError(_ name: String) -> DataSourceError? {
    blockedSteps.first { $0.step.target == name }.map { blocked in
      DataSourceError(
        .failed,
        """
        a change of several entries is unfinished at \(directory.path(of: name)): \(blocked.reason); remove the \
        obstacle, and the next call that can write there completes the change
        """)
    }
  }

  // MARK: - Changing files

  /// Makes changes. The lock is a write lock.
  /// - Parameter atomically: Whether a crash or an error leaves all of the changes or none. Otherwise all writes are on
  ///   the disk before anything is removed, and files that should have been removed may stay.
  /// - Throws: `CancellationError` if the task is cancelled before anything changes.
  func apply(_ changes: [FileChange], atomically: Bool) throws {
    let existing = try existingTargets(changes)
    let plan = try prepare(changes)
    guard atomically, plan.steps.count > 1 else { return try apply(plan) }
    let rest = DirectoryPlan(steps: blockedSteps.map(\.step))
    let whole = DirectoryPlan(steps: rest.steps + plan.steps)
    do { try whole.replace(rest, in: directory) } catch {
      plan.removeNewFiles(in: directory)
      throw error
    }
    var failed = try plan.rename(in: directory)
    if let first = failed.first, plan.canBeUndone(existing: existing, failed: failed.map(\.step)) {
      try plan.undo(in: directory)
      try rest.replace(whole, in: directory)
      plan.removeNewFiles(in: directory)
      throw DataSourceError(.failed, first.reason + "; nothing has changed")
    }
    failed += try plan.remove(in: directory)
    // Remove the plan last, and before any other change. Carrying it out twice in a row does no harm, but carrying it
    // out later would.
    try DirectoryPlan(steps: rest.steps + failed.map(\.step)).replace(whole, in: directory)
    if let first = failed.first {
      throw DataSourceError(
        .failed,
        first.reason + "; everything else was changed: remove the obstacle, and the next call completes the change"
      )
    }
  }

  /// Carries out a plan without writing it to the disk.
  private func apply(_ plan: DirectoryPlan) throws {
    if let failed = try plan.rename(in: directory).first {
      plan.removeNewFiles(in: directory)
      throw DataSourceError(.failed, failed.reason)
    }
    let failed = try plan.remove(in: directory)
    if let failed = failed.first, plan.hasOnlyRemovals { throw DataSourceError(.failed, failed.reason) }
  }

  /// Checks that nothing is in the way of changes.
  /// - Returns: The names that exist.
  private func existingTargets(_ changes: [FileChange]) throws -> Set<String> {
    var existing: Set<String> = []
    for change in changes {
      if let error = blockedError(change.name) { throw error }
      guard let kind = try directory.kind(of: change.name) else { continue }
      guard kind != .folder else {
        throw DataSourceError(
          .failed, "\(directory.path(of: change.name)) is a folder, where a file should be: move it away")
      }
      existing.insert(change.name)
    }
    return existing
  }

  /// Writes the new files.
  private func prepare(_ changes: [FileChange]) throws -> DirectoryPlan {
    // The sources of blocked steps keep their names.
    let taken = Set(blockedSteps.compactMap(\.step.source))
    var names = (0...).lazy.map { $0 == 0 ? ".new" : ".new-\($0)" }.filter { !taken.contains($0) }.makeIterator()
    var plan = DirectoryPlan()
    do {
      for change in changes {
        try Task.checkCancellation()
        switch change {
        case .write(let name, let bytes):
          let new = names.next()!
          plan.steps.append(.rename(new, to: name))
          try directory.create(new, bytes)
        case .remove(let name):
          plan.steps.append(.remove(name))
        }
      }
    } catch {
      plan.removeNewFiles(in: directory)
      throw error
    }
    return plan
  }
}

/// A step that can't be carried out.
private struct BlockedStep {
  let step: DirectoryPlan.Step
  let reason: String
}

/// The renames and removals that make a change (Protocol/directory-format.md, §8).
private struct DirectoryPlan {
  enum Step: Codable, Hashable {
    case rename(String, to: String)
    case remove(String)

    /// The file that the step creates, replaces or removes.
    var target: String {
      switch self {
      case .rename(_, let other): other
      case .remove(let name): name
      }
    }

    /// The file that the step renames; nil for a removal.
    var source: String? {
      if case .rename(let name, _) = self { name } else { nil }
    }
  }

  static let name = ".plan"
  private static let newName = ".plan.new"

  var steps: [Step] = []

  init(steps: [Step] = []) {
    self.steps = steps
  }

  // MARK: - On the disk

  /// Reads the plan of a directory; nil if there is none.
  init?(in directory: SharedDirectory) throws {
    guard let bytes = try directory.bytes(of: Self.name) else { return nil }
    let path = directory.path(of: Self.name)
    do { steps = try JSONDecoder().decode([Step].self, from: bytes) } catch {
      throw DataSourceError(
        .failed,
        """
        \(path), the list of an unfinished change of several entries, is damaged: remove it, and check the entries \
        that were written last
        """)
    }
    // The plan must not touch files elsewhere, no matter who wrote it.
    let names = steps.flatMap { [$0.target, $0.source ?? "a"] }
    guard names.allSatisfy({ !$0.contains("/") && ![".", "..", ""].contains($0) }) else {
      throw DataSourceError(.failed, "\(path) names files outside of its directory: remove it")
    }
  }

  /// Writes the plan in place of another one. A plan without steps is stored as no file.
  func replace(_ other: DirectoryPlan, in directory: SharedDirectory) throws {
    guard steps != other.steps else { return }
    if steps.isEmpty {
      try directory.remove(Self.name)
    } else {
      try directory.create(Self.newName, JSONEncoder().encode(steps))
      // The names of the new files must reach the disk before the plan's name does.
      try directory.synchronize()
      try directory.rename(Self.newName, to: Self.name)
    }
    try directory.synchronize()
  }

  // MARK: - Carrying out

  var hasOnlyRemovals: Bool { steps.allSatisfy { $0.source == nil } }

  /// Carries out every step that is possible, and returns the others.
  func carryOut(in directory: SharedDirectory) throws -> [BlockedStep] {
    try rename(in: directory) + remove(in: directory)
  }

  /// Renames the new files, and returns the steps that failed.
  func rename(in directory: SharedDirectory) throws -> [BlockedStep] {
    guard !hasOnlyRemovals else { return [] }
    let failed = attempt { step in
      if let source = step.source { try directory.rename(source, to: step.target) }
    }
    try directory.synchronize()
    return failed
  }

  /// Removes the files that should be removed, and returns the steps that failed.
  func remove(in directory: SharedDirectory) throws -> [BlockedStep] {
    let failed = attempt { step in
      if step.source == nil { try directory.remove(step.target) }
    }
    try directory.synchronize()
    return failed
  }

  private func attempt(_ body: (Step) throws -> Void) -> [BlockedStep] {
    steps.compactMap { step in
      do {
        try body(step)
        return nil
      } catch {
        return BlockedStep(step: step, reason: "\(error)")
      }
    }
  }

  // MARK: - Undoing

  /// Whether the renames can be undone, because those that succeeded have replaced no file.
  func canBeUndone(existing: Set<String>, failed: [Step]) -> Bool {
    steps.allSatisfy { $0.source == nil || !existing.contains($0.target) || failed.contains($0) }
  }

  /// Gives renamed files their first names.
  func undo(in directory: SharedDirectory) throws {
    for step in steps {
      if let source = step.source, try !directory.contains(source) { try directory.rename(step.target, to: source) }
    }
    try directory.synchronize()
  }

  func removeNewFiles(in directory: SharedDirectory) {
    for step in steps { if let source = step.source { try? directory.remove(source) } }
  }
}
