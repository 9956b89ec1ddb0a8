/// A mix of requests: `get`, `put`, `mixed:95`, `get-many:100`, `put-many:2`, `apply:2`, `page`, or `ycsb-a` to
/// `ycsb-f`.
struct Workload: Equatable, Sendable {
  let name: String
  /// The steps with their percentages, which add up to 100.
  let shares: [Share]
  /// The number of keys in a get-many, a put-many and the puts of an apply.
  let keysPerRequest: Int
  /// The default distribution of keys.
  let distribution: Distribution

  struct Share: Equatable, Sendable {
    let step: Step
    let percent: UInt64
  }

  enum Step: Equatable, Sendable {
    case get
    /// A put of an existing key.
    case update
    /// A put of a new key.
    case insert
    case getMany
    /// A put of several existing keys.
    case putMany
    /// The same in an apply, with as many checks.
    case apply
    case page
    case scan
    /// A get, and a put of the same key as the connection's next request.
    case readModifyWrite
  }

  /// The number of entries on a page.
  static let pageLimit: UInt64 = 20
  /// The maximum number of entries in a scan (YCSB E).
  static let scanLimit: UInt64 = 100
  static let names =
    "get, put, mixed:N (N percent gets), get-many:N, put-many:N, apply:N (N puts and N checks), page, ycsb-a to ycsb-f"

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
      self.init(text, [(.getMany, 100)], keysPerRequest: keys)
    case ("put-many", let keys?) where (1...10_000).contains(keys):
      self.init(text, [(.putMany, 100)], keysPerRequest: keys)
    case ("apply", let keys?) where (1...10_000).contains(keys):
      self.init(text, [(.apply, 100)], keysPerRequest: keys)
    case ("ycsb-a", nil): self.init(text, [(.get, 50), (.update, 50)], .zipf)
    case ("ycsb-b", nil): self.init(text, [(.get, 95), (.update, 5)], .zipf)
    case ("ycsb-c", nil): self.init(text, [(.get, 100)], .zipf)
    case ("ycsb-d", nil): self.init(text, [(.get, 95), (.insert, 5)], .latest)
    case ("ycsb-e", nil): self.init(text, [(.scan, 95), (.insert, 5)], .zipf)
    case ("ycsb-f", nil): self.init(text, [(.get, 50), (.readModifyWrite, 50)], .zipf)
    default: throw BenchError("'\(text)' is not a workload; give one of \(Self.names)")
    }
  }

  private init(
    _ name: String, _ shares: [(Step, UInt64)], _ distribution: Distribution = .uniform, keysPerRequest: Int = 1
  ) {
    self.name = name
    self.shares = shares.filter { $0.1 > 0 }.map { Share(step: $0.0, percent: $0.1) }
    self.distribution = distribution
    self.keysPerRequest = keysPerRequest
  }

  /// The operations that a target must support.
  var operations: Set<LoadOperation> {
    Set(
      shares.flatMap { share -> [LoadOperation] in
        switch share.step {
        case .get: [.get]
        case .update, .insert: [.put]
        case .getMany: [.getMany]
        case .putMany: [.putMany]
        case .apply: [.apply]
        case .page: [.page]
        case .scan: [.scan]
        case .readModifyWrite: [.get, .put]
        }
      })
  }
}
