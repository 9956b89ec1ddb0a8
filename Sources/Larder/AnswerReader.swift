import Wire

/// Who reads an answer of several frames. Letting go of it before the end cancels the answer.
final class AnswerReader: Sendable {
  private let connection: Connection
  private let answer: AnswerID
  /// Keeps the client's connections for as long as somebody reads from one.
  private let core: ClientCore

  init(_ core: ClientCore, _ connection: Connection, _ answer: AnswerID) {
    self.core = core
    self.connection = connection
    self.answer = answer
  }

  deinit {
    // Does nothing to an answer that has ended and been read.
    connection.abandon(answer)
  }

  /// The records of the next frame, and whether more follow.
  func next(deadline: UInt64) async throws(LarderError) -> (body: [UInt8], hasMore: Bool) {
    switch await connection.next(of: answer, deadline: deadline) {
    case .body(let body, let rest): return (body, rest != nil)
    case .failed(let error, _): throw error.ofRead(true)
    default: preconditionFailure("an answer has frames")
    }
  }
}
