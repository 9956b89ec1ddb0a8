import Wire

/// A writer of a workload's requests, which copies a template per operation and patches its numbers.
struct RequestWriter<T: Target> {
  let target: T
  private var keys: KeyChooser
  /// The workload's steps with cumulative percentages.
  private let steps: [(step: Workload.Step, below: UInt64)]
  private let templates: [RequestTemplate]
  private let keyCount: UInt64

  /// - Throws: `BenchError` if the target lacks one of the workload's operations.
  init(_ target: T, _ workload: Workload, keys: KeyChooser, keyCount: Int) throws {
    self.target = target
    self.keys = keys
    self.keyCount = UInt64(keyCount)
    var sum: UInt64 = 0
    steps = workload.shares.map { share in
      sum += share.percent
      return (share.step, sum)
    }
    for operation in workload.operations where target.template(for: operation) == nil {
      throw BenchError("this kind of server has no \(operation), which the workload \(workload.name) needs")
    }
    templates = LoadOperation.allCases.map { target.template(for: $0) ?? RequestTemplate() }
  }

  /// Appends the next request of a connection.
  /// - Parameter followUp: The key that the connection must write next, because it has just read it.
  @inline(__always)
  mutating func append(
    to output: inout ByteBuffer, sequence: UInt32, session: T.Session, followUp: inout UInt64?
  ) {
    if let key = followUp {
      followUp = nil
      return append(.put, to: &output, sequence, session) { _ in key }
    }
    switch nextStep() {
    case .get: append(.get, to: &output, sequence, session) { $0.next() }
    case .update: append(.put, to: &output, sequence, session) { $0.next() }
    case .insert: append(.put, to: &output, sequence, session) { $0.insert() }
    case .getMany: append(.getMany, to: &output, sequence, session) { $0.next() }
    case .putMany: append(.putMany, to: &output, sequence, session) { $0.next() }
    case .apply: append(.apply, to: &output, sequence, session) { $0.next() }
    case .page: append(.page, to: &output, sequence, session) { $0.next() }
    case .scan: append(.scan, to: &output, sequence, session) { $0.next() }
    case .readModifyWrite:
      let key = keys.next()
      followUp = key
      append(.get, to: &output, sequence, session) { _ in key }
    }
  }

  /// Appends a put that loads one key.
  mutating func appendLoad(_ key: UInt64, to output: inout ByteBuffer, sequence: UInt32, session: T.Session) {
    append(.put, to: &output, sequence, session) { _ in key }
  }

  @inline(__always)
  private mutating func nextStep() -> Workload.Step {
    guard steps.count > 1 else { return steps[0].step }
    let percent = keys.random.below(100)
    for (step, below) in steps where percent < below { return step }
    return steps[0].step
  }

  @inline(__always)
  private mutating func append(
    _ operation: LoadOperation, to output: inout ByteBuffer, _ sequence: UInt32, _ session: T.Session,
    key: (inout KeyChooser) -> UInt64
  ) {
    let start = output.count
    output.append(templates[operation.rawValue].bytes)
    for offset in templates[operation.rawValue].keyOffsets {
      BenchKey.patch(&output, at: start &+ offset, key(&keys))
    }
    for offset in templates[operation.rawValue].absentKeyOffsets {
      BenchKey.patch(&output, at: start &+ offset, keyCount &+ keys.random.below(keyCount))
    }
    if let offset = templates[operation.rawValue].pageOffsetField {
      output.replace(at: start &+ offset, with: keys.random.below(keyCount))
    }
    if let offset = templates[operation.rawValue].pageLimitField {
      output.replace(
        at: start &+ offset, with: UInt32(truncatingIfNeeded: 1 &+ keys.random.below(Workload.scanLimit)))
    }
    target.stamp(&output, at: start, sequence: sequence, session: session)
  }
}
