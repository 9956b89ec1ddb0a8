import Foundation
import LarderServer
import Platform
import TestSupport
import Testing
import Wire

@testable import Larder

/// Watches with real servers, and with a scripted one.
@Suite(.serialized) struct WatchTests {
  @Test func `commits are complete and in order, and start returns where they begin`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      try await items.put("before", [1])
      var watch = items.watch().makeAsyncIterator()
      #expect(try await watch.start() == 1)
      #expect(try await watch.start() == 1)
      try await items.put("a", [2], expiresIn: .seconds(60))
      try await items.put("l", list: [[1], []])
      _ = try await items.putMany([Write("b", [3]), Write("c", [4])])
      try await items.delete("a")
      _ = try await items.deleteAll()
      let first = try #require(try await watch.next())
      #expect(first.revision == 2)
      guard case .put(let entry) = first.changes[0] else {
        Issue.record("\(first)")
        return
      }
      #expect(entry.key == "a" && entry.bytes == [2] && entry.revision == 2)
      #expect(entry.expiresIn.map { $0 > .seconds(50) && $0 <= .seconds(60) } == true)
      #expect(
        try await watch.next()
          == Commit(revision: 3, changes: [.put(Entry(key: "l", value: .list([[1], []]), revision: 3))]))
      #expect(
        try await watch.next()
          == Commit(
            revision: 4,
            changes: ["b": [3], "c": [4]].sorted { $0.key < $1.key }
              .map { .put(Entry(key: $0.key, value: .single($0.value), revision: 4)) }))
      #expect(try await watch.next() == Commit(revision: 5, changes: [.delete(key: "a")]))
      #expect(try await watch.next() == Commit(revision: 6, changes: [.deleteAll]))
      // Another watch, of changes that the server has kept.
      var again = items.watch(from: 3, prefix: "b", keysOnly: true).makeAsyncIterator()
      #expect(
        try await again.next()
          == Commit(revision: 4, changes: [.put(Entry(key: "b", value: .single([]), revision: 4))]))
      #expect(try await again.next()?.changes == [.deleteAll])
    }
  }

  @Test func `a commit of many frames is one commit`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      var watch = items.watch().makeAsyncIterator()
      _ = try await watch.start()
      let value = [UInt8](repeating: 1, count: 1_000)
      _ = try await items.putMany((0..<2_000).map { Write("k\($0)", value) })
      #expect(try await watch.next()?.changes.count == 2_000)
    }
  }

  @Test func `a slow consumer makes the server wait for credit, and loses changes in the end`() async throws {
    try await withServer {
      $0.limits.maxChangeFeedBytes = 1 << 20
    } _: { client, _ in
      let items = client.store("items")
      var watch = items.watch().makeAsyncIterator()
      _ = try await watch.start()
      let value = [UInt8](repeating: 1, count: 10_000)
      for number in 0..<400 { try await items.put("k\(number)", value) }
      var revisions: [UInt64] = []
      do throws(LarderError) {
        while let commit = try await watch.next() { revisions.append(commit.revision) }
        Issue.record("a watch has an end")
      } catch {
        #expect(error.kind == .changesLost && error.outcome == .rejected)
        #expect(error.message.contains("revision"))
      }
      #expect(revisions == Array(1...UInt64(revisions.count)))
      #expect(revisions.count > 10 && revisions.count < 100)
      #expect(try await watch.next() == nil)
    }
  }

  @Test func `an iterator that is released or cancelled ends its watch`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      do {
        var watch = items.watch().makeAsyncIterator()
        _ = try await watch.start()
        #expect(try await items.stats()["watches"] == 1)
      }
      #expect(try await items.stats()["watches"] == 0)
      let task = Task { () -> LarderError? in
        var watch = items.watch().makeAsyncIterator()
        do throws(LarderError) {
          while try await watch.next() != nil {}
          return nil
        } catch { return error }
      }
      try await waitForWatch(items)
      task.cancel()
      #expect(await task.value?.kind == .cancelled)
      #expect(try await items.stats()["watches"] == 0)
    }
  }

  @Test func `a watch ends with its store`() async throws {
    try await withServer { client, _ in
      let items = client.store("items")
      var watch = items.watch().makeAsyncIterator()
      _ = try await watch.start()
      try await client.dropStore("items")
      do throws(LarderError) {
        _ = try await watch.next()
        Issue.record("a change of a dropped store")
      } catch { #expect(error.kind == .storeUnknown) }
      var other = client.store("nothing").watch().makeAsyncIterator()
      do throws(LarderError) {
        _ = try await other.start()
        Issue.record("a watch of no store")
      } catch { #expect(error.kind == .storeUnknown) }
    }
  }

  @Test func `a watch that could not begin can begin later`() async throws {
    try await withServer { client, _ in
      let later = client.store("later")
      var watch = later.watch().makeAsyncIterator()
      do throws(LarderError) {
        _ = try await watch.start()
        Issue.record("a watch of no store")
      } catch { #expect(error.kind == .storeUnknown) }
      #expect(try await watch.next() == nil)
      try await client.createStore("later", engine: "memory")
      #expect(try await watch.start() == 0)
      try await later.put("a", [1])
      #expect(try await watch.next()?.revision == 1)
    }
  }

  @Test func `a watch continues over restarts of a durable store, in the order of revisions and without a gap`()
    async throws
  {
    let folder = try TemporaryFolder()
    let address = "unix:\(folder.path)/larder.sock"
    let options = ["--data", "\(folder.path)/data", "--store", "items=log"]
    var server = try ServerProcess(address: address, options: options)
    let client = try LarderClient(address)
    let items = client.store("items")
    try await items.put("k", [0])
    let watching = Task {
      var revisions: [UInt64] = []
      for try await commit in items.watch(from: 2) {
        revisions.append(commit.revision)
        if commit.changes == [.delete(key: "end")] { break }
      }
      return revisions
    }
    // The server keeps only changes that were made while the store was watched.
    try await waitForWatch(items)
    var last: UInt64 = 1
    for _ in 0..<3 {
      for number in 0..<20 { last = try await items.put("k\(number)", [UInt8(number)]) }
      #expect(server.end(with: SIGTERM) == 0)
      server = try ServerProcess(address: address, options: options)
      try await waitForWatch(items)
    }
    last = try await items.put("end", [1])
    _ = try await items.delete("end")
    #expect(try await watching.value == Array(2...last + 1))
    await client.shutdown()
    _ = server.end(with: SIGTERM)
  }

  private func waitForWatch(_ store: RemoteStore) async throws {
    for _ in 0..<1_000 {
      if try await store.stats()["watches"] == 1 { return }
      try await Task.sleep(for: .milliseconds(5))
    }
    Issue.record("the store is not watched")
  }

  @Test func `a watch whose changes a restart has lost says so`() async throws {
    let folder = try TemporaryFolder()
    let address = "unix:\(folder.path)/larder.sock"
    var server = try ServerProcess(address: address, store: "items")
    let client = try LarderClient(address)
    let items = client.store("items")
    var watch = items.watch().makeAsyncIterator()
    _ = try await watch.start()
    try await items.put("a", [1])
    #expect(try await watch.next()?.revision == 1)
    _ = server.end(with: SIGKILL)
    server = try ServerProcess(address: address, store: "items")
    do throws(LarderError) {
      _ = try await watch.next()
      Issue.record("a change of another store")
    } catch { #expect(error.kind == .changesLost) }
    await client.shutdown()
    _ = server.end(with: SIGTERM)
  }

  /// Returns the error of a watch that must not have another commit.
  private func loss(_ watch: inout RemoteStore.Watch.AsyncIterator) async -> LarderError? {
    do throws(LarderError) {
      Issue.record("\(String(describing: try await watch.next()))")
      return nil
    } catch { return error }
  }

  @Test func `a watch never continues in another store that has the revisions that it expects`() async throws {
    let folder = try TemporaryFolder()
    let address = "unix:\(folder.path)/larder.sock"
    var server = try ServerProcess(address: address, store: "items")
    let client = try LarderClient(address)
    let items = client.store("items")
    var watch = items.watch().makeAsyncIterator()
    _ = try await watch.start()
    try await items.put("a", [1])
    #expect(try await watch.next()?.revision == 1)
    let incarnation = try #require(watch.incarnation)
    _ = server.end(with: SIGKILL)
    server = try ServerProcess(address: address, store: "items")
    // The new store keeps its changes from the first one on, and has reached a higher revision.
    var other = items.watch().makeAsyncIterator()
    #expect(try await other.start() == 0)
    for key in ["b", "c", "d"] { try await items.put(key, [1]) }
    let error = await loss(&watch)
    #expect(error?.kind == .changesLost && error?.message.contains("not the store that was watched") == true)
    var fresh = items.watch(from: 2, incarnation: incarnation).makeAsyncIterator()
    do throws(LarderError) {
      _ = try await fresh.start()
      Issue.record("a watch of another store")
    } catch { #expect(error.kind == .changesLost) }
    // Without an incarnation, the caller takes whatever the store has.
    var any = items.watch(from: 2).makeAsyncIterator()
    #expect(try await any.start() == 1 && any.incarnation != incarnation)
    #expect(try await any.next()?.revision == 2)
    // A store that is created again is another one, too.
    try await client.dropStore("items")
    try await client.createStore("items", engine: "memory")
    var again = items.watch(from: 1, incarnation: any.incarnation).makeAsyncIterator()
    #expect(await loss(&again)?.kind == .changesLost)
    await client.shutdown()
    _ = server.end(with: SIGTERM)
  }

  @Test(arguments: ["log", "directory"])
  func `after a kill, a store doesn't reuse revisions that its clients have seen`(
    engine: String
  ) async throws {
    let folder = try TemporaryFolder()
    let address = "unix:\(folder.path)/larder.sock"
    let options = [
      "--data", "\(folder.path)/data", "--store", "safe=\(engine)", "--store", "brief=\(engine)?durability=none",
    ]
    var server = try ServerProcess(address: address, options: options)
    let client = try LarderClient(address)
    let (safe, brief) = (client.store("safe"), client.store("brief"))
    let seen = Lock<[UInt64]>([])
    let watching = Task {
      for try await commit in safe.watch() { seen.withLock { $0.append(commit.revision) } }
    }
    try await waitForWatch(safe)
    var briefWatch = brief.watch().makeAsyncIterator()
    _ = try await briefWatch.start()
    var last: UInt64 = 0
    for round: UInt8 in 0..<3 {
      let revision = try await safe.put("k", [round])
      for _ in 0..<50 { last = try await brief.put("k", [round]) }
      // What the watch has not seen before the kill is lost to it.
      while seen.withLock({ $0.last }) != revision { try await Task.sleep(for: .milliseconds(1)) }
      _ = server.end(with: SIGKILL)
      server = try ServerProcess(address: address, options: options)
      // The watch of what a crash can't take continues.
      try await waitForWatch(safe)
      #expect(try #require(await brief.stats()["revision"]) > last)
      let error = await { () async -> LarderError? in
        do throws(LarderError) {
          while try await briefWatch.next() != nil {}
          return nil
        } catch { return error }
      }()
      #expect(error?.kind == .changesLost && error?.message.contains("not the store that was watched") == true)
      #expect(try await brief.put("k", [round]) > last)
      briefWatch = brief.watch().makeAsyncIterator()
      _ = try await briefWatch.start()
    }
    #expect(seen.withLock { $0 } == [1, 2, 3])
    watching.cancel()
    await client.shutdown()
    _ = server.end(with: SIGTERM)
  }

  @Test func `a server without incarnations is watched without them`() async throws {
    let server = try FakeServer()
    let bodies = Lock<[[UInt8]]>([])
    server.set { request in
      guard request.operation == .watch else { return .answer }
      bodies.withLock { $0.append(request.body) }
      return .send(Self.firstFrame(id: request.id))
    }
    let client = try LarderClient(server.address)
    var watch = client.store("items").watch().makeAsyncIterator()
    #expect(try await watch.start() == 0 && watch.incarnation == nil)
    #expect(bodies.withLock { $0 } == [[UInt8](repeating: 0, count: 16)])
    var other = client.store("items").watch(from: 1, incarnation: 5).makeAsyncIterator()
    do throws(LarderError) {
      _ = try await other.start()
      Issue.record("a watch of an unknown store")
    } catch { #expect(error.kind == .changesLost && error.message.contains("can't confirm")) }
  }

  @Test func `a server that goes silent during an idle watch is noticed`() async throws {
    let server = try FakeServer()
    let isSilent = Lock(false)
    server.set { request in
      switch request.operation {
      case .watch: return .send(Self.firstFrame(id: request.id))
      default: return isSilent.withLock { $0 } ? .silence : .answer
      }
    }
    let client = try LarderClient(server.address, configuration: configuration { $0.silenceLimit = .milliseconds(200) })
    var watch = client.store("items").watch().makeAsyncIterator()
    _ = try await watch.start()
    let waiting = Task { [watch] in
      var watch = watch
      return try await watch.next()
    }
    // The client sends pings, and the server answers them.
    while server.count(of: .ping) < 2 { try await Task.sleep(for: .milliseconds(5)) }
    #expect(server.count(of: .watch) == 1)
    isSilent.withLock { $0 = true }
    while server.count(of: .watch) == 1, server.shared.withLock({ $0.connections }) == 1 {
      try await Task.sleep(for: .milliseconds(5))
    }
    waiting.cancel()
    _ = try? await waiting.value
  }

  private static func firstFrame(id: UInt32) -> [UInt8] {
    var buffer = ByteBuffer()
    let start = buffer.beginReply(id: id, more: true)
    buffer.append(UInt64(0))
    buffer.endFrame(start)
    return buffer.toArray()
  }
}

/// Frames of a watch, assembled to commits without any I/O.
@Suite struct CommitAssemblyTests {
  private func frame(_ through: UInt64, _ changes: (ChangeKind, UInt64, String)...) -> [UInt8] {
    var buffer = ByteBuffer()
    buffer.append(through)
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    for (kind, revision, key) in changes {
      var key = key
      key.withUTF8 {
        unsafe buffer.appendChange(kind, revision: revision, key: UnsafeRawBufferPointer($0), value: none)
      }
    }
    return buffer.toArray()
  }

  private func add(_ frame: [UInt8], _ assembly: inout CommitAssembly) -> [String]? {
    guard unsafe assembly.add(frame.span.bytes) else { return nil }
    var commits: [String] = []
    while let commit = assembly.popFirst() { commits.append("\(commit.revision):\(commit.changes.count)") }
    return commits
  }

  @Test func `a commit is complete when everything up to its revision has arrived`() {
    var assembly = CommitAssembly(keysOnly: false)
    #expect(add(frame(4), &assembly) == [])
    #expect(assembly.through == 4)
    #expect(add(frame(5, (.single, 5, "a"), (.deleted, 6, "b")), &assembly) == ["5:1"])
    #expect(add(frame(5, (.single, 6, "c")), &assembly) == [])
    #expect(add(frame(7, (.single, 6, "d"), (.single, 7, "e")), &assembly) == ["6:3", "7:1"])
    // A frame without changes can complete a commit, and a watch can skip revisions.
    #expect(add(frame(8, (.single, 9, "f")), &assembly) == [])
    #expect(add(frame(12), &assembly) == ["9:1"])
  }

  @Test func `an incomplete commit is sent again on the next connection`() {
    var assembly = CommitAssembly(keysOnly: false)
    #expect(add(frame(4), &assembly) == [])
    #expect(add(frame(4, (.single, 5, "a")), &assembly) == [])
    assembly.restart()
    #expect(add(frame(4), &assembly) == [])
    #expect(add(frame(5, (.single, 5, "a"), (.single, 5, "b")), &assembly) == ["5:2"])
  }

  @Test func `a lost watch says which changes are missing`() {
    var assembly = CommitAssembly(keysOnly: false)
    #expect(add(frame(4, (.lost, 9, "")), &assembly) == [])
    #expect(assembly.lostRevision == 9)
  }

  @Test func `frames that do not continue where the last one ended are refused`() {
    let first = frame(4)
    let wrong = [
      frame(3), frame(5, (.single, 4, "a")), frame(6, (.single, 6, "a"), (.single, 5, "b")), [1, 2, 3],
      Array(frame(5, (.single, 5, "a")).dropLast()),
    ]
    for frame in wrong {
      var assembly = CommitAssembly(keysOnly: false)
      #expect(add(first, &assembly) == [])
      #expect(add(frame, &assembly) == nil)
    }
  }
}
