extension LarderError {
  static var malformedReply: LarderError {
    LarderError(.protocolViolation, outcome: .unknown, "the body of a reply is malformed")
  }
}

extension Connection {
  /// Makes a call.
  /// - Returns: a reply that is not `.failed`.
  @inline(__always)
  func call<Q: Request>(_ request: Q, store: StoreReference? = nil, time: CallTime) async throws(LarderError) -> Reply {
    let reply = await call(request, use: store.map { .uses($0.number) } ?? .none, store: store, time: time)
    if case .failed(let error, _) = reply { throw error }
    return reply
  }
}

/// What a reply holds. Each belongs to a form, which the connection has checked.
extension Reply {
  var number: UInt64 {
    guard case .number(let number) = self else { preconditionFailure("not a reply of the request's form") }
    return number
  }

  var body: [UInt8] {
    guard case .body(let body, _) = self else { preconditionFailure("not a reply of the request's form") }
    return body
  }
}
