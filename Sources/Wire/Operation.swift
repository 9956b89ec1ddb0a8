/// What a request asks for: `Protocol/wire.md` §6.
public enum Operation: UInt8, CaseIterable, Sendable {
  case hello = 1
  case credit = 2
  case cancel = 3
  case ping = 4
  case stats = 5
  case slowLog = 6
  case connections = 7
  case storeOpen = 8
  case storeClose = 9
  case storeCreate = 10
  case storeList = 11
  case storeDrop = 12
  case get = 16
  case getMany = 17
  case put = 18
  case putMany = 19
  case delete = 20
  case deleteMany = 21
  case deleteAll = 22
  case count = 23
  case page = 24
  case all = 25
  case watch = 26

  /// The name that the protocol has for it: `store-open` for `storeOpen`.
  public var name: String { "\(self)".map { $0.isUppercase ? "-\($0.lowercased())" : String($0) }.joined() }
}
