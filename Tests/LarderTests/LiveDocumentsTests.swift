import Documents
import TestSupport
import Testing

@testable import Larder

/// What arrives, and the changes that it makes, without any I/O.
@Suite struct LiveDocumentsTests {
  private let start = ContinuousClock.now

  private func snapshot(_ revision: UInt64, _ entries: [(key: String, revision: UInt64, text: String)])
    -> DocumentSnapshot
  {
    DocumentSnapshot(
      entries: entries.map {
        DocumentEntry(key: $0.key, revision: $0.revision, text: Array($0.text.utf8), expiry: nil)
      },
      revision: revision)
  }

  private func describe(_ changes: [LiveChange<Document>]) -> [String] {
    changes.map { change in
      switch change {
      case .initial(let documents): "initial \(documents.count)"
      case .inserted(let document): "inserted \(document.key)"
      case .updated(let document): "updated \(document.key)"
      case .removed(let key): "removed \(key)"
      }
    }
  }

  @Test func `a second snapshot yields the differences from the first`() throws {
    var documents = try LiveDocuments(.all)
    let first = snapshot(4, [("a", 1, "{}"), ("b", 2, "{}"), ("c", 3, "{}"), ("d", 4, "{}")])
    #expect(describe(documents.replace(by: first)) == ["initial 4"])
    // Another store, which counts from the start, can have the same revision of another document.
    let second = snapshot(5, [("a", 1, "{}"), ("b", 2, #"{"x":1}"#), ("c", 5, "{}"), ("e", 3, "{}")])
    #expect(describe(documents.replace(by: second)) == ["removed d", "updated b", "updated c", "inserted e"])
    #expect(describe(documents.replace(by: second)) == [])
  }

  @Test func `an expiry counts only if the document was not written since`() throws {
    var documents = try LiveDocuments(.all)
    _ = documents.replace(by: snapshot(0, []))
    func put(_ key: String, _ revision: UInt64, _ expiry: Duration?) {
      let entry = Entry(key: key, value: .single(Array("{}".utf8)), revision: revision, expiresIn: expiry)
      _ = documents.apply(Commit(revision: revision, changes: [.put(entry)]), receivedAt: start)
    }
    put("a", 1, .seconds(1))
    put("b", 2, .seconds(2))
    put("a", 3, .seconds(3))
    put("b", 4, nil)
    put("c", 5, .seconds(2))
    #expect(describe(documents.expire(now: start + .milliseconds(1_999))) == [])
    #expect(describe(documents.expire(now: start + .milliseconds(2_500))) == ["removed c"])
    let next = try #require(documents.nextExpiry)
    #expect(next > start + .seconds(3) && next < start + .seconds(4))
    #expect(describe(documents.expire(now: next)) == ["removed a"])
    #expect(documents.nextExpiry == nil)
  }

  @Test func `expiries of documents that are written again and again don't pile up`() throws {
    var documents = try LiveDocuments(.all)
    _ = documents.replace(by: snapshot(0, []))
    for revision in 1...10_000 {
      let entry = Entry(
        key: "a", value: .single(Array("{}".utf8)), revision: UInt64(revision), expiresIn: .seconds(revision))
      _ = documents.apply(Commit(revision: UInt64(revision), changes: [.put(entry)]), receivedAt: start)
    }
    #expect(documents.expiryCount < 100)
  }
}
