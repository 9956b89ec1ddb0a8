import DataSources
import Documents
import Foundation
import Larder
import TestSupport
import Testing
import TypedQueries

@Suite struct LarderErrorTests {
  @Test func `a kind of error can be caught, whatever its message and outcome`() async throws {
    func caught(_ error: any Error) -> String {
      do { throw error } catch LarderError.timedOut { return "timed out" } catch LarderError.closed {
        return "closed"
      } catch { return "another" }
    }
    #expect(caught(LarderError(.timedOut, outcome: .notExecuted, "no connection")) == "timed out")
    #expect(caught(LarderError(.closed)) == "closed")
    #expect(caught(LarderError(.serverTimedOut)) == "another" && caught(DataSourceError.notFound) == "another")
    func caughtTyped(_ error: LarderError) -> Bool {
      do throws(LarderError) { throw error } catch LarderError.timedOut { return true } catch { return false }
    }
    #expect(caughtTyped(LarderError(.timedOut, "no reply")) && !caughtTyped(.disconnected))
    let folder = try TemporaryFolder()
    let client = try LarderClient("unix:\(folder.path)/none.sock").with(timeout: .milliseconds(20))
    await #expect(throws: LarderError.connectFailed) { try await client.ping() }
  }

  @Test func `errors of the same kind are equal`() {
    let errors = LarderError.Kind.allCases.map { LarderError($0) }
    let others = LarderError.Kind.allCases.map { LarderError($0, outcome: .unknown, isRead: true, "\($0)") }
    #expect(errors == others && Set(errors + others).count == errors.count)
  }

  @Test func `there is an error for each kind`() {
    let errors: [LarderError] = [
      .unknown, .notFound, .illegalArgument, .notImplemented, .notValid, .failed, .queryNotSupported,
      .dataSerialization, .malformed, .unknownOperation, .frameLength, .helloExpected, .versionNotSupported,
      .storeUnknown, .storeExists, .conditionFailed, .keyInvalid, .valueTooLarge, .changesLost, .tooManyRequests,
      .tooManyStores, .tooManyConnections, .storeFull, .shuttingDown, .serverTimedOut, .answerExpired,
      .answerCancelled, .storeReadOnly, .valueDamaged, .notPermitted, .queryStopped, .indexExists, .tooManyIndexes,
      .indexUnknown, .uploadUnknown, .storeDamaged, .notLeader, .disconnected, .timedOut, .connectFailed, .notTrusted,
      .protocolViolation, .closed, .cancelled,
    ]
    #expect(errors.map(\.kind) == LarderError.Kind.allCases)
  }

  @Test func `an error that was created has the outcome of its kind, as the protocol defines it`() throws {
    let page = try String(contentsOf: ProjectFiles.url("Protocol/wire.md"), encoding: .utf8)
    let section = try #require(page.split(separator: "## 7. Outcomes and error codes").last)
    let rows = section.prefix(while: { $0 != "#" }).matches(of: #/\n\| (\d+) \| \w+ \| ([123]) \|/#)
    #expect(rows.count > 30)
    for row in rows {
      let kind = try #require(LarderError.Kind.allCases.first { $0.code == UInt16(row.output.1) }, "\(row.output.1)")
      let outcome: LarderError.Outcome =
        switch row.output.2 {
        case "1": .notExecuted
        case "2": .rejected
        default: .unknown
        }
      #expect(LarderError(kind).outcome == outcome, "\(kind)")
    }
    #expect(!LarderError(.timedOut).isSafeToRetry && LarderError(.timedOut, isRead: true).isSafeToRetry)
    #expect(LarderError(.connectFailed).isSafeToRetry && !LarderError(.conditionFailed).isSafeToRetry)
  }

  @Test func `the localized description of each error says what happened`() throws {
    func failure(_ body: () throws -> Void) throws -> any Error {
      do { try body() } catch { return error }
      throw LarderError(.failed, "no error")
    }
    let errors: [any Error] = [
      LarderError(.storeUnknown, "there is no store items"), LarderError(.timedOut),
      DataSourceError(.notFound, "there is nothing under 7"), DataSourceError(.notImplemented),
      SelectorError(.badOperand, at: "$.age.$in", "$in takes an array"),
      DocumentIndexError(.noFields, "an index has at least one field"),
      DocumentUpdateError(.notANumber, at: "$.$inc.a", "a is a string"),
      try failure { _ = try JSONValue(parsing: #"{"a":1"#) },
      try failure { _ = try RegularExpression("(") },
      try failure { _ = try Selector(predicate: "a ==") },
      try failure { _ = try Selector(predicate: "a > %@", true) },
    ]
    for error in errors {
      #expect(error.localizedDescription == "\(error)")
      #expect(error.localizedDescription.contains(" ") && !error.localizedDescription.contains("couldn’t be completed"))
    }
    #expect(DataSourceError(.notImplemented).message == "the source doesn't support this operation")
  }
}
