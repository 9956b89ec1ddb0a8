import Foundation
import Platform
import Synchronization
import TestSupport
import Testing
import Wire

@testable import LarderServer

/// How the server divides what its clients share.
struct FairShareTests {
  private func sharer(_ user: UInt32, _ connection: UInt64) -> Sharer { Sharer(.user(user), connection: connection) }

  @Test func `a lone client gets all shares, and later clients take theirs until all have the same`() {
    let shares = FairShares()
    let hoard = (0..<8).map { _ in shares.take(1, for: sharer(1, 1), limit: 8) {} }
    #expect(hoard.allSatisfy { $0 != nil } && shares.take(1, for: sharer(1, 1), limit: 8) {} == nil)
    let others = (0..<5).map { _ in shares.take(1, for: sharer(2, 2), limit: 8) {} }
    #expect(others.map { $0 != nil } == [true, true, true, true, false])
    // Another connection of the same user gets a part of that user's half.
    #expect(shares.take(1, for: sharer(1, 3), limit: 8) {} != nil)
    #expect(hoard.map { $0?.isRevoked } == [false, false, false, true, true, true, true, true])
    #expect(shares.amount == 8)
  }

  @Test func `a newcomer of equal size replaces an old share only if configured`() {
    for replacesEqual in [false, true] {
      let shares = FairShares(replacesEqual: replacesEqual)
      let old = shares.take(10, for: sharer(1, 1), limit: 10) {}
      let new = shares.take(10, for: sharer(1, 2), limit: 10) {}
      #expect((new != nil) == replacesEqual && old?.isRevoked == replacesEqual)
    }
  }

  @Test func `only a client that would have the most is refused, and only the largest share is revoked`() {
    var random = SeededGenerator.announced()
    for _ in 0..<50 {
      let shares = FairShares()
      let limit = Int.random(in: 1...40, using: &random)
      let maxAmount = Int.random(in: 1...max(1, limit / 4), using: &random)
      var live: [(share: Share, sharer: Sharer, amount: Int)] = []
      func amount(_ isCounted: (Sharer) -> Bool) -> Int {
        live.reduce(0) { $0 + (isCounted($1.sharer) ? $1.amount : 0) }
      }
      for _ in 0..<300 {
        if !live.isEmpty, Int.random(in: 0..<4, using: &random) == 0 {
          live.remove(at: Int.random(in: live.indices, using: &random)).share.release()
          continue
        }
        let user = UInt32.random(in: 0..<4, using: &random)
        let client = sharer(user, UInt64(user) * 10 + .random(in: 0..<4, using: &random))
        let wanted = Int.random(in: 1...maxAmount, using: &random)
        let ownConnection = amount { $0 == client }
        let fits = amount { _ in true } + wanted <= limit
        let share = shares.take(wanted, for: client, limit: limit) {}
        let revoked = live.filter(\.share.isRevoked)
        #expect(!fits || share != nil && revoked.isEmpty)
        // Without what its other connections have lost.
        let own = live.reduce(0) {
          $0 + ($1.sharer.principal == client.principal && !$1.share.isRevoked ? $1.amount : 0)
        }
        for lost in revoked {
          // It had more than the client has now.
          let principalAmount = amount { $0.principal == lost.sharer.principal }
          let connectionAmount = amount { $0 == lost.sharer }
          #expect(
            lost.sharer.principal == client.principal
              ? connectionAmount > ownConnection + wanted : principalAmount > own + wanted)
        }
        live.removeAll(where: \.share.isRevoked)
        if let share {
          live.append((share, client, wanted))
        } else {
          for other in live where other.sharer.principal != client.principal {
            #expect(amount { $0.principal == other.sharer.principal } <= own + wanted)
          }
          for other in live where other.sharer.principal == client.principal && other.sharer != client {
            #expect(amount { $0 == other.sharer } <= ownConnection + wanted)
          }
        }
        #expect(shares.amount == amount { _ in true } && shares.amount <= limit)
      }
      for (share, _, _) in live { share.release() }
      #expect(shares.amount == 0)
    }
  }

  @Test func `strangers lose to everyone else, and among themselves as others do`() {
    let shares = FairShares()
    let stranger = Sharer(.stranger, host: .host("a"), connection: 1)
    let large = shares.take(4, for: Sharer(.anonymous, connection: 9), limit: 8) {}
    let small = (0..<4).map { _ in shares.take(1, for: stranger, limit: 8) {} }
    // However much the others have, a stranger takes nothing from them.
    #expect(shares.take(1, for: Sharer(.stranger, host: .host("b"), connection: 2), limit: 8) {} != nil)
    #expect(large?.isRevoked == false && small.map { $0?.isRevoked } == [false, false, false, true])
    let more = (0..<4).map { _ in shares.take(1, for: Sharer(.anonymous, connection: 9), limit: 8) {} }
    #expect(more.allSatisfy { $0 != nil } && small.allSatisfy { $0?.isRevoked == true })
    #expect(shares.take(1, for: stranger, limit: 8) {} == nil && large?.isRevoked == false && shares.amount == 8)
  }

  @Test func `a principal's part is divided among its hosts, and then their connections`() {
    let shares = FairShares()
    func take(_ host: String, _ connection: UInt64) -> Share? {
      shares.take(1, for: Sharer(.named("web"), host: .host(host), connection: connection), limit: 8) {}
    }
    let many = (1...8).map { take("a", $0) }
    let few = (0..<4).map { _ in take("b", 20) }
    #expect(few.map { $0 != nil } == [true, true, true, true] && take("b", 21) != nil)
    #expect(many.count { $0?.isRevoked == true } == 4 && few.count { $0?.isRevoked == true } == 1)
  }

  @Test func `turns rotate among principals, then their connections, then the requests in order`() {
    var queue = TurnQueue<String>()
    for number in 1...3 { queue.append("a\(number)", for: sharer(1, 1)) }
    for number in 1...2 { queue.append("b\(number)", for: sharer(1, 2)) }
    queue.append("c1", for: sharer(2, 3))
    var order: [String] = []
    while let next = queue.popFirst() {
      order.append(next)
      // Another turn, as the runner gives it.
      if next == "c1", order.count < 6 { queue.append(next, for: sharer(2, 3)) }
    }
    #expect(order == ["a1", "c1", "b1", "c1", "a2", "c1", "b2", "a3"])
    #expect(queue.isEmpty)
  }
}

extension ServerTests {
  /// Clients that take as much as they can of what all clients share.
  struct GreedyClientTests {
    @Test func `unread finds don't keep their places from others`() throws {
      let server = try TestServer { $0.findTime = .seconds(60) }
      let witness = try server.connect(credit: 1 << 30)
      try witness.putNumbered(2_000, size: 100)
      let clients = try (0..<4).map { _ in try server.connect(credit: 1) }
      for client in clients {
        for id: UInt32 in 5..<21 { try client.send(Request.find(id: id)) }
        for _ in 5..<21 { #expect(try client.receive().more) }
      }
      #expect(try witness.figures()["finds"] == 0 && witness.figures()["find_results_bytes"] == 64 * 8_000)
      #expect(try witness.find(#"{"n":{"$gte":0}}"#, countOnly: true).result.found == 2_000)
      #expect(try witness.find().keys.count == 2_000)
    }

    @Test func `when all places are taken, the connection that has most of them loses its newest find`() throws {
      let server = try TestServer {
        $0.finds = 8
        $0.findTime = .seconds(60)
      }
      let witness = try server.connect(credit: 1 << 30)
      try witness.putNumbered(2_000, size: 100)
      let clients = try (0..<4).map { _ in try server.connect() }
      for client in clients {
        for id: UInt32 in 5...6 { try client.send(Request.find(id: id, selector: hostileSelector)) }
        #expect(try client.pings())
      }
      #expect(try witness.figures()["finds"] == 8)
      #expect(try witness.find(#"{"n":{"$gte":0}}"#, countOnly: true).result.found == 2_000)
      #expect(eventually { clients.contains { !$0.isSilent(for: 0.005) } })
      let losers = clients.filter { !$0.isSilent(for: 0.005) }
      try #require(losers.count == 1)
      let reply = try losers[0].receive()
      #expect(reply.isError(.tooManyRequests, id: 6) && reply.message.contains("limits.finds"), "\(reply)")
      #expect(try witness.figures()["finds"] == 7)
    }

    @Test func `replies that are not read give up their memory to those of a client that has less`() throws {
      let server = try TestServer { $0.maxResultBytes = 20_000 }
      let (hoarder, other) = (try server.connect(credit: 1), try server.connect(credit: 1))
      try other.putNumbered(2_000, size: 100)
      for id: UInt32 in 5...6 { #expect(try hoarder.call(Request.find(id: id)).more) }
      #expect(try other.figures()["find_results_bytes"] == 16_000)
      #expect(try other.call(Request.find(id: 5)).more)
      let reply = try hoarder.receive()
      #expect(reply.isError(.answerExpired, id: 6) && reply.message.contains("limits.result-memory"), "\(reply)")
      // Nobody has more than this one now.
      #expect(try hoarder.call(Request.find(id: 7)).isError(.tooManyRequests, id: 7))
      #expect(try other.figures()["find_results_bytes"] == 16_000)
      try hoarder.send(Request.cancel(5))
      #expect(try hoarder.receive().isError(.cancelled, id: 5))
      #expect(try hoarder.call(Request.find(id: 7)).more)
    }

    // MARK: Uploads and incomplete requests

    private func begin(_ client: TestClient) throws -> UInt64 {
      try #require(client.call(Request.make(.uploadBegin, id: 5)).number)
    }

    private func part(_ upload: UInt64, _ offset: Int, _ bytes: [UInt8]) -> [UInt8] {
      var body = ByteBuffer()
      unsafe body.appendUploadPart(upload, offset: UInt64(offset), bytes: bytes.span.bytes)
      return Request.make(.uploadPart, store: 0, id: 6, body.toArray())
    }

    private func limit(_ limits: inout ServerLimits) {
      limits.maxFrameBytes = 1 << 20
      limits.maxTotalInputBytes = 8 << 20
    }

    @Test func `a client that fills the memory for uploads doesn't keep others from uploading`() throws {
      let server = try TestServer(limits: limit)
      let (hoarder, other) = (try server.connect(), try server.connect())
      let bytes = [UInt8](repeating: 1, count: 1_000_000)
      let uploads = try (0..<9).map { _ in try begin(hoarder) }
      let replies = try uploads.map { try hoarder.call(part($0, 0, bytes)) }
      #expect(replies.map(\.isDone) == [true, true, true, true, true, true, true, true, false])
      #expect(replies[8].isError(.tooManyRequests, id: 6))
      for _ in 0..<3 {
        let upload = try begin(other)
        for offset in stride(from: 0, to: bytes.count, by: 250_000) {
          #expect(try other.call(part(upload, offset, Array(bytes.prefix(250_000)))).isDone)
        }
      }
      // The newest uploads of the client that had most are gone.
      for (number, upload) in uploads.prefix(8).enumerated() {
        let reply = try hoarder.call(part(upload, bytes.count, []))
        #expect(number < 4 ? reply.isDone : number < 7 || reply.isError(.uploadUnknown, id: 6), "\(number): \(reply)")
      }
      #expect(try other.figures()["input_bytes"]! <= 8 << 20)
      #expect(try hoarder.pings())
    }

    @Test func `neither empty parts nor a steady trickle keep an upload open forever`() throws {
      for (frameTime, uploadTime, bytes) in [(200, 60_000, []), (60_000, 400, [1])] as [(Int, Int, [UInt8])] {
        let server = try TestServer {
          $0.frameTime = .milliseconds(frameTime)
          $0.uploadTime = .milliseconds(uploadTime)
        }
        let client = try server.connect()
        let upload = try begin(client)
        #expect(try client.call(part(upload, 0, [1])).isDone)
        var (reply, offset) = (try client.call(part(upload, 1, bytes)), 1 + bytes.count)
        let start = monotonicMilliseconds()
        while reply.isDone, monotonicMilliseconds() < start + 20_000 {
          usleep(20_000)
          reply = try client.call(part(upload, offset, bytes))
          offset += bytes.count
        }
        #expect(reply.isError(.uploadUnknown, id: 6), "\(reply)")
      }
    }

    @Test(arguments: [1, 2])
    func `a flood of half frames stays within the limit and doesn't block large frames of others`(workers: Int) throws {
      let server = try TestServer(workers: workers) {
        limit(&$0)
        // A slow machine takes a while to send all this, and frames that stall end connections for another reason.
        $0.frameTimeout = .seconds(300)
      }
      let witness = try server.connect()
      let value = [UInt8](repeating: 1, count: 900_000)
      #expect(try witness.call(Request.put("key", value, id: 3)).isDone)
      var (clients, highest): ([TestClient], UInt64) = ([], 0)
      for size in [500_000, 20_000, 70_000, 500_000] {
        for _ in 0..<40 {
          let client = try server.connect()
          // The server may end the connection before it has read everything.
          try? client.send(Array(Request.put("flood", value, id: 3).prefix(size)))
          clients.append(client)
          highest = max(highest, try witness.figures()["input_bytes"]!)
        }
        // Once all have little, one that wants much has most.
        if clients.count <= 80 { #expect(try witness.call(Request.put("key", value, id: 3)).isDone) }
      }
      // What others get is released a moment later.
      #expect(highest > 3 << 20 && highest <= 10 << 20, "\(highest)")
      let ended = clients.filter { !$0.isSilent(for: 0.005) }
      #expect(ended.count > 20 && ended.count < clients.count, "\(ended.count)")
      for client in ended { #expect(try client.receive().isNotice(.tooManyRequests)) }
      clients.removeAll()
      #expect(try eventually { try witness.figures()["input_bytes"] == 0 })
    }
  }
}
