import Wire

/// The errors that calls end in without a word from the server.
extension Connection {
  static let closed = LarderError(.closed, outcome: .notExecuted, "the client was closed")

  static func cancelled(_ outcome: LarderError.Outcome) -> LarderError {
    LarderError(.cancelled, outcome: outcome, "the task that made the call was cancelled")
  }

  /// The error of a call that was sent and whose time is up.
  var silence: LarderError {
    LarderError(.timedOut, outcome: .unknown, "no reply from \(address) within the call's time")
  }

  /// The error of a call that was not sent and whose time is up.
  func lateness(_ state: borrowing State) -> LarderError {
    if let failure = state.link.lastFailure { return failure }
    if state.link.isReady {
      return LarderError(.timedOut, outcome: .notExecuted, "the call's time was up before its turn came at \(address)")
    }
    return LarderError(.timedOut, outcome: .notExecuted, "no connection to \(address) within the call's time")
  }

  /// What a call whose request had got so far is told about the end of its connection.
  func loss(_ end: ConnectionEnd, wasHanded: Bool, isCut: Bool) -> Reply {
    switch end {
    case .broken(let reason):
      let error = LarderError(
        .disconnected, outcome: wasHanded ? .unknown : .notExecuted, "the connection to \(address) ended: \(reason)")
      return .failed(error, isCut ? .final : .connectionLost)
    case .notice(let error):
      let isPassing = error.outcome == .notExecuted && !isCut
      return .failed(error, isPassing ? .connectionLost : .final)
    case .violation(let reason):
      let error = LarderError(
        .protocolViolation, outcome: wasHanded ? .unknown : .notExecuted,
        "\(address) does not keep to the protocol: \(reason)")
      return .failed(error, .final)
    }
  }

  /// Why an attempt to connect failed, and whether calls should not wait for another one.
  func failure(_ end: ConnectionEnd) -> (error: LarderError, isFinal: Bool) {
    switch end {
    case .broken(let reason):
      return (LarderError(.connectFailed, outcome: .notExecuted, "can't connect to \(address): \(reason)"), false)
    case .notice(let error): return (error, error.outcome != .notExecuted)
    case .violation(let reason):
      let error = LarderError(
        .protocolViolation, outcome: .notExecuted, "\(address) does not speak Larder's protocol: \(reason)")
      return (error, true)
    }
  }
}
