import Wire

/// Writes the requests of a workload: copies the prepared one of each operation and patches its numbers.
struct RequestWriter<T: Target> {
  let target: T
  var keys: KeyChooser
  /// The workload's steps with the percentages summed up.
  private let steps: [(step: Workload.Step, below: UInt64)]
  private let templates: [RequestTemplate]
  private let keyCount: UInt64

  /// - Throws: when the target has nothing like one of the workload's operations.
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
      throw BenchError("such a server has no \(operation): the workload \(workload.name) can't be run against it")
    }
    templates = Operation.allCases.map { target.template(for: $0) ?? RequestTemplate() }
  }

  /// Appends the next request of a connection.
  /// - Parameter followUp: the key that the connection has to write because it has just read it.
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
    case .page: append(.page, to: &output, sequence, session) { $0.next() }
    case .scan: append(.scan, to: &output, sequence, session) { $0.next() }
    case .readModifyWrite:
      let key = keys.next()
      followUp = key
      append(.get, to: &output, sequence, session) { _ in key }
    }
  }

  /// Appends the put of one key, to load it.
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
    _ operation: Operation, to output: inout ByteBuffer, _ sequence: UInt32, _ session: T.Session,
    key: (inout KeyChooser) -> UInt64
  ) {
    let place = output.count
    output.append(templates[operation.rawValue].bytes)
    for offset in templates[operation.rawValue].keyPlaces {
      BenchKey.patch(&output, at: place &+ offset, key(&keys))
    }
    if let offset = templates[operation.rawValue].offsetPlace {
      output.replace(at: place &+ offset, with: keys.random.below(keyCount))
    }
    if let offset = templates[operation.rawValue].limitPlace {
      output.replace(
        at: place &+ offset, with: UInt32(truncatingIfNeeded: 1 &+ keys.random.below(Workload.scanLimit)))
    }
    target.stamp(&output, at: place, sequence: sequence, session: session)
  }
}
