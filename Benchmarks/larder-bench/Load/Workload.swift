/// What is asked of a server, and in which shares: `get`, `put`, `mixed:95`, `get-many:100`, `page`, `ycsb-a` … `ycsb-f`.
struct Workload: Equatable, Sendable {
  let name: String
  /// Steps with their percentages, which sum up to 100.
  let shares: [Share]
  let keysInGetMany: Int
  /// What the keys are drawn from unless `--distribution` says otherwise.
  let distribution: Distribution

  struct Share: Equatable, Sendable {
    let step: Step
    let percent: UInt64
  }

  enum Step: Equatable, Sendable {
    case get
    /// A put of a key that is there.
    case update
    /// A put of a new key.
    case insert
    case getMany
    case page
    case scan
    /// A get, and when its turn comes again on the connection, a put of the same key.
    case readModifyWrite
  }

  /// Entries of a page.
  static let pageLimit: UInt64 = 20
  /// The longest scan of YCSB E.
  static let scanLimit: UInt64 = 100
  static let names = "get, put, mixed:N (N percent gets), get-many:N, page, ycsb-a to ycsb-f"

  init(_ text: String) throws {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
    let number = parts.count == 2 ? Int(parts[1]) : nil
    switch (parts[0], number) {
    case ("get", nil) where parts.count == 1: self.init(text, [(.get, 100)])
    case ("put", nil) where parts.count == 1: self.init(text, [(.update, 100)])
    case ("page", nil) where parts.count == 1: self.init(text, [(.page, 100)])
    case ("mixed", let gets?) where (0...100).contains(gets):
      self.init(text, [(.get, UInt64(gets)), (.update, UInt64(100 - gets))])
    case ("get-many", let keys?) where (1...10_000).contains(keys):
      self.init(text, [(.getMany, 100)], keysInGetMany: keys)
    case ("ycsb-a", nil): self.init(text, [(.get, 50), (.update, 50)], .zipf)
    case ("ycsb-b", nil): self.init(text, [(.get, 95), (.update, 5)], .zipf)
    case ("ycsb-c", nil): self.init(text, [(.get, 100)], .zipf)
    case ("ycsb-d", nil): self.init(text, [(.get, 95), (.insert, 5)], .latest)
    case ("ycsb-e", nil): self.init(text, [(.scan, 95), (.insert, 5)], .zipf)
    case ("ycsb-f", nil): self.init(text, [(.get, 50), (.readModifyWrite, 50)], .zipf)
    default: throw BenchError("'\(text)' is not a workload; there are \(Self.names)")
    }
  }

  private init(
    _ name: String, _ shares: [(Step, UInt64)], _ distribution: Distribution = .uniform, keysInGetMany: Int = 1
  ) {
    self.name = name
    self.shares = shares.filter { $0.1 > 0 }.map { Share(step: $0.0, percent: $0.1) }
    self.distribution = distribution
    self.keysInGetMany = keysInGetMany
  }

  /// The operations that a target must have.
  var operations: Set<Operation> {
    Set(
      shares.flatMap { share -> [Operation] in
        switch share.step {
        case .get: [.get]
        case .update, .insert: [.put]
        case .getMany: [.getMany]
        case .page: [.page]
        case .scan: [.scan]
        case .readModifyWrite: [.get, .put]
        }
      })
  }
}
