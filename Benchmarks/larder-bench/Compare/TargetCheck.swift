import Platform

/// A check that a server does the measured work: values are read back as written, and other keys are missing.
struct TargetCheck {
  private let address: Address
  private let sizes: [Int]
  private let keysPerSize: Int
  static let sizes = [1, 17, 100, 5_000, 60_000]

  /// - Parameter sizes: The sizes of the values, in bytes.
  init(address: Address, sizes: [Int] = Self.sizes, keysPerSize: Int = 10) {
    self.address = address
    self.sizes = sizes
    self.keysPerSize = keysPerSize
  }

  func run(_ protocolName: TargetProtocol) throws {
    switch protocolName {
    case .larder: try check(LarderTarget.self)
    case .resp: try check(RespTarget.self)
    case .memcached: try check(MemcachedTarget.self)
    case .echo: try checkEcho()
    }
  }

  private func check<T: Target>(_ type: T.Type) throws {
    var connection = try ValueConnection<T>(to: address)
    var random = Random(seed: 7)
    var written: [(key: UInt64, value: [UInt8])] = []
    for size in sizes {
      for _ in 0..<keysPerSize {
        let key = BenchKey.limit - 1 - UInt64(written.count)
        let value = (0..<size).map { _ in UInt8(97 + random.below(26)) }
        try connection.put(value, at: key)
        written.append((key, value))
      }
    }
    for (key, value) in written {
      guard try connection.get(key, valueSize: value.count) == value else {
        throw BenchError("the value of \(value.count) bytes differs from the one that was written")
      }
    }
    guard try connection.get(BenchKey.limit / 2, valueSize: 1) == nil else {
      throw BenchError("a missing key was found")
    }
  }

  /// Returns whether the server returns a value of the given size for the key. It does not while it is still
  /// recovering.
  func canRead(_ key: UInt64, valueSize: Int, _ protocolName: TargetProtocol) -> Bool {
    switch protocolName {
    case .larder: canRead(LarderTarget.self, key, valueSize)
    case .resp: canRead(RespTarget.self, key, valueSize)
    case .memcached, .echo: false
    }
  }

  private func canRead<T: Target>(_ type: T.Type, _ key: UInt64, _ valueSize: Int) -> Bool {
    do {
      var connection = try ValueConnection<T>(to: address)
      return try connection.get(key, valueSize: valueSize) != nil
    } catch {
      return false
    }
  }

  private func checkEcho() throws {
    var connection = try ValueConnection<EchoTarget>(to: address)
    let request = try connection.putRequest(BenchValue.bytes(size: 100), at: 1)
    _ = try connection.exchange(request)
    guard connection.replyBytes == request.bytes else { throw BenchError("the echo differs from what was sent") }
  }
}
