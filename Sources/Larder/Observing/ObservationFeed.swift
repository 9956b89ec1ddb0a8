// An observation:
//
// 1. `ObservationFeed` begins a watch and then reads the documents that match with a find, so that every change that is
//    newer than the find's snapshot arrives.
// 2. `LiveDocuments` keeps the key, revision and expiry of each of them, evaluates the selector on each entry that is
//    written, and turns commits, snapshots and expiries into changes of the set.
// 3. A lost connection is the watch's business: it continues after the last commit. If changes are lost, the feed
//    begins again, and the new snapshot is compared with what is known.

import Documents
import Platform
import Wire

/// What an observation receives: a snapshot of the documents that match, the commits that follow it, and again a
/// snapshot where commits are missing; and the times at which documents expire.
///
/// A task of its own reads from the server, so that a wait for it can end at a time without ending the watch. It reads
/// one event ahead at most: a slow consumer makes the server wait. Releasing the feed ends the task.
final class ObservationFeed: Sendable {
  private enum Event: Sendable {
    case snapshot(DocumentSnapshot)
    case commit(Commit, receivedAt: ContinuousClock.Instant)
    case failed(LarderError)
    /// It is time for an expiry.
    case time
  }

  private struct Timer {
    let instant: ContinuousClock.Instant
    let task: Task<Void, Never>
  }

  private let events: AsyncStream<Event>
  private let eventInput: AsyncStream<Event>.Continuation
  /// One element for each event that the consumer has taken.
  private let demand: AsyncStream<Void>.Continuation
  private let reader: Task<Void, Never>
  private let timer = Lock<Timer?>(nil)

  init(_ store: RemoteStore, _ selector: Selector) {
    let (events, eventInput) = AsyncStream.makeStream(of: Event.self)
    let (demands, demand) = AsyncStream.makeStream(of: Void.self)
    (self.events, self.eventInput, self.demand) = (events, eventInput, demand)
    reader = Task {
      await Self.read(store, selector) { event in
        eventInput.yield(event)
        for await _ in demands { return true }
        return false
      }
    }
  }

  deinit {
    reader.cancel()
    timer.withLock { $0?.task.cancel() }
  }

  // MARK: The consumer

  /// Waits until something changes the documents.
  /// - Returns: The changes, at least one.
  /// - Throws: The error that ends the observation.
  func nextChanges(
    of documents: inout LiveDocuments, isolation actor: isolated (any Actor)?
  ) async throws(LarderError) -> [LiveChange<Document>] {
    while true {
      if let expiry = documents.nextExpiry { setTimer(expiry) }
      var iterator = events.makeAsyncIterator()
      let changes: [LiveChange<Document>]
      switch await iterator.next(isolation: actor) {
      case .snapshot(let snapshot):
        changes = documents.replace(by: snapshot)
        demand.yield()
      case .commit(let commit, let time):
        changes = documents.apply(commit, receivedAt: time)
        demand.yield()
      case .time:
        timer.withLock { $0 = nil }
        changes = documents.expire(now: .now)
      case .failed(let error): throw error
      case nil: throw LarderError(.cancelled, outcome: .unknown, "the task that observes documents was cancelled")
      }
      if !changes.isEmpty { return changes }
    }
  }

  /// Makes an event at an instant, unless there is an earlier one.
  private func setTimer(_ instant: ContinuousClock.Instant) {
    timer.withLock { [eventInput] timer in
      if let timer, timer.instant <= instant { return }
      timer?.task.cancel()
      let task = Task {
        try? await Task.sleep(until: instant, clock: .continuous)
        if !Task.isCancelled { eventInput.yield(.time) }
      }
      timer = Timer(instant: instant, task: task)
    }
  }

  // MARK: The reader

  /// Passes on events until there is an error that ends the observation.
  /// - Parameter pass: Returns once the consumer has taken the event; false if there is no consumer.
  private static func read(_ store: RemoteStore, _ selector: Selector, _ pass: (Event) async -> Bool) async {
    var hasBegun = false
    var failures = 0
    while true {
      do throws(LarderError) {
        // Everything that is newer than the snapshot is among the changes, because the watch begins before it.
        var watch = store.watch().makeAsyncIterator()
        _ = try await watch.start()
        let snapshot = try await store.snapshot(of: selector)
        (hasBegun, failures) = (true, 0)
        guard await pass(.snapshot(snapshot)) else { return }
        while let commit = try await watch.next() {
          guard commit.revision > snapshot.revision else { continue }
          guard await pass(.commit(commit, receivedAt: .now)) else { return }
        }
      } catch {
        if hasBegun, error.kind == .changesLost { continue }
        guard hasBegun, error.isTemporary || error.kind == .tooManyRequests else {
          _ = await pass(.failed(error))
          return
        }
        failures += 1
        let pause = store.core.configuration.backoff.milliseconds(afterFailures: failures)
        // If the task is cancelled, the next attempt throws.
        try? await Task.sleep(for: .milliseconds(pause))
      }
    }
  }
}

extension RemoteStore {
  /// Returns the documents that match a selector, with their expiries.
  fileprivate func snapshot(of selector: Selector) async throws(LarderError) -> DocumentSnapshot {
    let request = try FindDocumentsRequest(DocumentQuery(selector), using: nil, time: nil)
    var (body, rest) = try await stream(request, deadline: deadline)
    var entries: [DocumentEntry] = []
    while true {
      let offset = Self.append(documentsIn: body, receivedAt: .now, to: &entries)
      guard let stream = rest else {
        guard let result = unsafe FindResult(body.span.bytes, at: offset) else { throw .malformedReply }
        return DocumentSnapshot(entries: entries, revision: result.revision)
      }
      guard offset == body.count else { throw .malformedReply }
      let frame = try await stream.next(deadline: deadline.instant)
      body = frame.body
      if !frame.hasMore { rest = nil }
    }
  }

  /// Decodes the documents at the beginning of a frame.
  /// - Returns: The offset of their end.
  private static func append(
    documentsIn body: [UInt8], receivedAt time: ContinuousClock.Instant, to entries: inout [DocumentEntry]
  ) -> Int {
    let bytes = unsafe body.span.bytes
    var offset = 0
    while let record = EntryRecord(bytes, at: offset), record.kind == .single {
      entries.append(
        DocumentEntry(
          key: bytes.extracting(record.key).toString(), revision: record.revision,
          text: bytes.extracting(record.value).toArray(),
          expiry: Entry.expiry(milliseconds: record.expiry).map { time + $0 }))
      offset = record.end
    }
    return offset
  }
}
