import Wire

/// What a call puts into a frame. Its body is written straight into the connection's output, under the connection's lock.
protocol Request: Sendable {
  static var operation: Wire.Operation { get }
  static var form: ReplyForm { get }
  /// Whether it changes nothing, so that it may be sent again when its reply got lost.
  static var isRead: Bool { get }

  var measure: RequestMeasure { get }
  func encode(into output: inout ByteBuffer)
}

/// The sizes of a request that a server limits, taken before the lock is.
struct RequestMeasure {
  var body = 0
  /// The shortest and the longest key; 1 when there is none.
  var shortestKey = 1
  var longestKey = 1
  var largestValue = 0
  /// How many keys or entries.
  var items = 1

  mutating func add(key: String) {
    let size = key.utf8.count
    shortestKey = min(shortestKey, size)
    longestKey = max(longestKey, size)
    body += size
  }
}

/// What a server said in its hello that it takes.
struct ServerLimits: Equatable, Sendable {
  var largestFrame = 4_096
  var largestValue = 0
  var largestKey = 0
  var requestsInFlight = 0
  var items = 0

  init() {}

  init(_ hello: ServerHello, largestFrame: Int, largestCount: Int) {
    self.largestFrame = min(Int(hello.largestFrame), largestFrame)
    largestValue = Int(hello.largestValue)
    largestKey = Int(hello.largestKey)
    requestsInFlight = min(Int(hello.mostRequestsInFlight), largestCount)
    items = Int(hello.mostKeys)
  }

  /// Whether the server takes a request. The common case is five comparisons.
  @inline(__always)
  func allow(_ measure: RequestMeasure) -> Bool {
    measure.longestKey <= largestKey && measure.shortestKey > 0 && measure.largestValue <= largestValue
      && measure.items <= items
      && measure.body <= largestFrame - Frame.leastLength
  }

  /// Why the server would not take a request.
  func refusal(of measure: RequestMeasure) -> LarderError {
    if measure.shortestKey == 0 {
      return LarderError(.keyInvalid, outcome: .rejected, "an empty key; keys have 1 to \(largestKey) bytes")
    }
    if measure.longestKey > largestKey {
      return LarderError(
        .keyInvalid, outcome: .rejected,
        "a key of \(measure.longestKey) bytes; the server takes keys of up to \(largestKey)")
    }
    if measure.largestValue > largestValue {
      return LarderError(
        .valueTooLarge, outcome: .rejected,
        "a value of \(measure.largestValue) bytes; the server takes values of up to \(largestValue)")
    }
    if measure.items > items {
      return LarderError(
        .illegalArgument, outcome: .rejected,
        "\(measure.items) keys or entries in one call; the server takes up to \(items): split the call")
    }
    return LarderError(
      .frameLength, outcome: .rejected,
      "a request of \(measure.body) bytes; the server takes up to \(largestFrame - Frame.leastLength): split the call")
  }
}

extension RawSpan {
  /// A text's bytes as they are in it, without a copy.
  @inline(__always)
  static func with<R>(_ text: String, _ body: (RawSpan) -> R) -> R {
    var text = text
    return text.withUTF8 { unsafe body(RawSpan(_unsafeBytes: UnsafeRawBufferPointer($0))) }
  }
}
