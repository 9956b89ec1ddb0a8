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
  var maxValueSize = 0
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
  var maxFrameSize = 4_096
  var maxValueSize = 0
  var maxKeySize = 0
  var requestsInFlight = 0
  var items = 0

  init() {}

  init(_ hello: ServerHello, maxFrameSize: Int, largestCount: Int) {
    self.maxFrameSize = min(Int(hello.maxFrameSize), maxFrameSize)
    maxValueSize = Int(hello.maxValueSize)
    maxKeySize = Int(hello.maxKeySize)
    requestsInFlight = min(Int(hello.maxRequestsInFlight), largestCount)
    items = Int(hello.maxKeyCount)
  }

  /// Whether the server takes a request. The common case is five comparisons.
  @inline(__always)
  func allow(_ measure: RequestMeasure) -> Bool {
    measure.longestKey <= maxKeySize && measure.shortestKey > 0 && measure.maxValueSize <= maxValueSize
      && measure.items <= items
      && measure.body <= maxFrameSize - Frame.minLength
  }

  /// Why the server would not take a request.
  func refusal(of measure: RequestMeasure) -> LarderError {
    if measure.shortestKey == 0 {
      return LarderError(.keyInvalid, outcome: .rejected, "an empty key; keys have 1 to \(maxKeySize) bytes")
    }
    if measure.longestKey > maxKeySize {
      return LarderError(
        .keyInvalid, outcome: .rejected,
        "a key of \(measure.longestKey) bytes; the server takes keys of up to \(maxKeySize)")
    }
    if measure.maxValueSize > maxValueSize {
      return LarderError(
        .valueTooLarge, outcome: .rejected,
        "a value of \(measure.maxValueSize) bytes; the server takes values of up to \(maxValueSize)")
    }
    if measure.items > items {
      return LarderError(
        .illegalArgument, outcome: .rejected,
        "\(measure.items) keys or entries in one call; the server takes up to \(items): split the call")
    }
    return LarderError(
      .frameLength, outcome: .rejected,
      "a request of \(measure.body) bytes; the server takes up to \(maxFrameSize - Frame.minLength): split the call")
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
