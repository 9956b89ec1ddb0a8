import Wire

/// A request. Its body is written directly to the connection's output, under the lock of the connection's state.
protocol ServerRequest: Sendable {
  static var operation: Wire.Operation { get }
  static var form: ReplyForm { get }
  /// Whether the call can be split into several if it is too large.
  static var isDivisible: Bool { get }
  /// The features that the server's hello must have, one per bit.
  static var requiredFeatures: UInt32 { get }

  /// Whether the server may take so long that the calls of other tasks must not wait for it.
  var mayTakeLong: Bool { get }
  var measure: RequestMeasure { get }
  func encode(into output: inout ByteBuffer)
}

extension ServerRequest {
  static var isDivisible: Bool { true }
  static var requiredFeatures: UInt32 { operation.descriptor.feature }
  var mayTakeLong: Bool { false }
}

/// The sizes of a request that the server limits. They are measured before the lock is taken.
struct RequestMeasure {
  /// The size of the body in bytes, or more.
  var bodySize = 0
  /// The sizes of the shortest and the longest key in bytes; 1 if there is none.
  var minKeySize = 1
  var maxKeySize = 1
  var maxValueSize = 0
  /// The number of keys or entries.
  var itemCount = 1
  /// The features that the server's hello must have for what is in this request, beyond those of all such requests.
  var features: UInt32 = 0

  mutating func add(key: String) {
    let size = key.utf8.count
    minKeySize = min(minKeySize, size)
    maxKeySize = max(maxKeySize, size)
    bodySize += size
  }
}

/// The limits and features that the server announced in its hello, as far as they concern single requests.
struct NegotiatedLimits: Equatable, Sendable {
  private var maxFrameSize = 4_096
  private var maxValueSize = 0
  private var maxKeySize = 0
  private var maxItemCount = 0
  private(set) var requestsInFlight = 0
  /// The number of stores that a connection may have open, at least 1.
  private(set) var openStores = 1
  private var features: UInt32 = 0

  /// The limits before the hello: no request is allowed.
  init() {}

  /// - Parameters:
  ///   - maxFrameSize: The size of a frame that the client sends at most, in bytes.
  ///   - maxRequests: The number of requests that the client has in flight at most.
  init(_ hello: ServerHello, maxFrameSize: Int, maxRequests: Int) {
    self.maxFrameSize = min(Int(hello.maxFrameSize), maxFrameSize)
    maxValueSize = Int(hello.maxValueSize)
    maxKeySize = min(Int(hello.maxKeySize), Key.maxSize)
    maxItemCount = Int(hello.maxKeyCount)
    requestsInFlight = min(Int(hello.maxRequestsInFlight), maxRequests)
    openStores = max(1, Int(hello.maxOpenStores))
    features = hello.features
  }

  /// Whether the server has all of the features.
  @inline(__always)
  func include(_ requiredFeatures: UInt32) -> Bool { requiredFeatures & ~features == 0 }

  /// Whether the server allows a request. The common case is five comparisons.
  @inline(__always)
  func allow(_ measure: RequestMeasure) -> Bool {
    measure.maxKeySize <= maxKeySize && measure.minKeySize > 0 && measure.maxValueSize <= maxValueSize
      && measure.itemCount <= maxItemCount
      && measure.bodySize <= maxFrameSize - Frame.minLength
  }

  /// The error of a request that the server would refuse.
  /// - Parameter isDivisible: `ServerRequest.isDivisible`.
  func refusal(of measure: RequestMeasure, isDivisible: Bool) -> LarderError {
    let advice = isDivisible ? ": split the call" : " in one step"
    if measure.minKeySize == 0 {
      return LarderError(.keyInvalid, outcome: .rejected, "the key is empty; a key has 1 to \(maxKeySize) bytes")
    }
    if measure.maxKeySize > maxKeySize {
      return LarderError(
        .keyInvalid, outcome: .rejected,
        "the key has \(measure.maxKeySize) bytes; the server accepts keys of up to \(maxKeySize)")
    }
    if measure.maxValueSize > maxValueSize {
      return LarderError(
        .valueTooLarge, outcome: .rejected,
        "the value has more than the \(maxValueSize) bytes that the server accepts")
    }
    if measure.itemCount > maxItemCount {
      return LarderError(
        .illegalArgument, outcome: .rejected,
        """
        the call has \(measure.itemCount) \(isDivisible ? "keys or entries" : "operations"); \
        the server accepts up to \(maxItemCount)\(advice)
        """)
    }
    return LarderError(
      .frameLength, outcome: .rejected,
      "the request has \(measure.bodySize) bytes; the server accepts up to \(maxFrameSize - Frame.minLength)\(advice)")
  }
}

extension RawSpan {
  /// Calls `body` with the UTF-8 bytes of a string, without a copy.
  @inline(__always)
  static func with<R>(_ text: String, _ body: (RawSpan) -> R) -> R {
    var text = text
    return text.withUTF8 { unsafe body(RawSpan(_unsafeBytes: UnsafeRawBufferPointer($0))) }
  }
}

/// A request whose operation says everything.
protocol BodilessRequest: ServerRequest {}

extension BodilessRequest {
  var measure: RequestMeasure { RequestMeasure() }
  func encode(into output: inout ByteBuffer) {}
}
