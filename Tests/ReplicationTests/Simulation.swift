import Dispatch
import Platform
import Replication
import ReplicationTestSupport
import TestSupport

@testable import Storage

/// Nodes that share a store with one entry, clients that write and read it, and what befalls them, all under a seed and
/// on one thread. While a call waits for the network, others act.
final class Simulation: @unchecked Sendable {
  /// What a client has seen: a write of a value, or a read.
  struct Operation {
    let isWrite: Bool
    var value: Int
    let start: Int
    /// When it was acknowledged; nil if its outcome is unknown.
    var end: Int?
  }

  private static let lease: UInt64 = 400
  private static let maxDepth = 4

  private final class Member {
    let name: String
    var membership: Membership
    var leader: Leader?
    /// The store while another node leads it.
    var followed: FollowedStore?

    init(_ name: String, _ membership: Membership) { (self.name, self.membership) = (name, membership) }
  }

  /// A node's leadership, with the entry in its memory.
  private final class Leader {
    let engine: ReplicatedEngine
    var value: Int
    var revision: UInt64
    /// The write that the log has not acknowledged yet.
    var pending: (operation: Int, value: Int)?
    var isBusy = false

    init(_ engine: ReplicatedEngine, value: Int, revision: UInt64) {
      (self.engine, self.value, self.revision) = (engine, value, revision)
    }
  }

  private var random: SeededGenerator
  private let sabotage: SimulatedLog.Sabotage?
  private var clock: UInt64 = 1_000_000
  private var step = 0
  private var depth = 0
  private var lastValue = 0
  private var log: SimulatedLog!
  private var members: [Member] = []
  private var acting: Set<String> = []
  private(set) var operations: [Operation] = []
  private(set) var takeovers = 0
  /// How many of them were by nodes that had followed the store.
  private(set) var warmTakeovers = 0

  init(seed: UInt64, sabotage: SimulatedLog.Sabotage? = nil) {
    random = SeededGenerator(seed: seed)
    self.sabotage = sabotage
    log = SimulatedLog(sabotage: sabotage) { [unowned self] isBefore in weather(isBefore) }
    members = ["a", "b", "c"].map { Member($0, makeMembership($0)) }
  }

  private func makeMembership(_ name: String) -> Membership {
    Membership(name, address: name, lease: Self.lease, in: log) { [unowned self] in clock }
  }

  /// Returns whether something happens that happens once in `n` times.
  private func oneIn(_ n: Int) -> Bool { Int.random(in: 0..<n, using: &random) == 0 }

  private let cache = ValueCache(byteCount: 1 << 20)
  private let queue = DispatchQueue(label: "upkeep")

  func run(steps: Int) {
    for _ in 0..<steps { act() }
  }

  /// What happens to a call of the log, and meanwhile.
  private func weather(_ isBefore: Bool) -> SimulatedLog.Fault {
    clock += UInt64.random(in: 0...3, using: &random)
    if oneIn(40) { clock += UInt64.random(in: 0...(2 * Self.lease), using: &random) }
    if depth < Self.maxDepth, oneIn(3) {
      depth += 1
      for _ in 0..<Int.random(in: 1...8, using: &random) { act() }
      depth -= 1
    }
    guard isBefore, oneIn(10) else { return .none }
    return [.before, .after, .unsynchronized].randomElement(using: &random)!
  }

  private func act() {
    step += 1
    clock += UInt64.random(in: 0...15, using: &random)
    if oneIn(60) { log.failOver() }
    let idle = members.filter { !acting.contains($0.name) }
    guard let member = idle.randomElement(using: &random) else { return }
    acting.insert(member.name)
    defer { acting.remove(member.name) }
    switch Int.random(in: 0..<15, using: &random) {
    case 0...2: beat(member)
    case 3...4: survey(member)
    case 5...7: write(on: member)
    case 8...10: read(on: member)
    case 11...13: follow(on: member)
    default: if oneIn(8) { crash(member) }
    }
  }

  private func beat(_ member: Member) {
    let life = member.membership.life
    do { try member.membership.beat() } catch { return }
    if sabotage == .lateLease, let life { life.lease.extend(to: clock + Self.lease) }
  }

  private func survey(_ member: Member) {
    if let leader = member.leader, leader.engine.hasLostStore { abandon(member) }
    do {
      try member.membership.join()
      let live = try member.membership.liveNodes()
      guard let life = member.membership.life, member.leader == nil else { return }
      let store = try log.stores().first
      if let leader = store?.leader, leader != life.node, live[leader] != nil { return }
      try lead(member, life)
    } catch {}
  }

  private func follow(on member: Member) {
    guard member.leader == nil else { return }
    let now = ClockReading(wall: clock, monotonic: clock)
    do {
      guard let followed = member.followed else {
        guard let store = try log.stores().first else { return }
        member.followed = try FollowedStore(
          StoreName("s"), StoreSpecification(.replicated), store.id, in: log, keepingValuesIn: cache, at: now)
        return
      }
      let tail = try log.commits(from: [followed.id: followed.position], upTo: 1, provenBy: nil)[followed.id]
      if try !followed.replay(tail?.commits ?? [], at: now) { member.followed = nil }
    } catch is SharedLogError {
    } catch { member.followed = nil }
  }

  private func lead(_ member: Member, _ life: Membership.Life) throws {
    var map = EntryMap()
    let name = try StoreName("s")
    let now = ClockReading(wall: clock, monotonic: clock)
    var isWarm = false
    let engine = try StoreOpener(
      log: log, membership: member.membership, life: life, keepingValuesIn: cache, upkeepOn: queue
    ).open(
      EngineOpening(
        name: name, specification: StoreSpecification(.replicated), folder: nil, fileSystem: LocalFileSystem(), now: now
      ),
      into: &map,
      following: { _ in
        isWarm = member.followed != nil
        return member.followed.take()
      }, progress: { _, _ in })
    // Without it, no node follows the store.
    try? engine.records?.record(StoreHistory.new.bytes, as: .history)
    if isWarm { warmTakeovers += 1 }
    let key: [UInt8] = [1]
    var value = 0
    if let entry = unsafe map.get(key.span.bytes, now: clock), let bytes = unsafe entry.value {
      value = unsafe bytes.withUnsafeBytes { unsafe $0.reduce(0) { $0 << 8 | Int($1) } }
    }
    takeovers += 1
    member.leader = Leader(engine, value: value, revision: map.revisions.last)
  }

  private func abandon(_ member: Member) { member.leader = nil }

  private func crash(_ member: Member) {
    (member.leader, member.followed) = (nil, nil)
    member.membership = makeMembership(member.name)
  }

  private func write(on member: Member) {
    guard let leader = member.leader, let lease = leader.engine.lease, lease.isHeld(at: clock) else { return }
    if leader.pending == nil {
      lastValue += 1
      operations.append(Operation(isWrite: true, value: lastValue, start: step))
      leader.pending = (operations.count - 1, lastValue)
      leader.value = lastValue
      leader.revision += 1
    }
    guard let pending = leader.pending else { return }
    var buffer = CommitBuffer()
    let (key, value): ([UInt8], [UInt8]) = (
      [1], (0..<4).map { UInt8(truncatingIfNeeded: pending.value >> (24 - 8 * $0)) }
    )
    unsafe key.withUnsafeBytes { key in
      unsafe value.withUnsafeBytes { value in
        unsafe buffer.put(key, value, kind: .single, expiry: 0, revision: leader.revision)
      }
    }
    buffer.seal()
    do throws(EngineError) {
      _ = unsafe try leader.engine.write(buffer.bytes, last: leader.revision, separatedCount: 0, syncs: true)
    } catch {
      // The commit thread tries again, unless the store is lost.
      if case .failed = error { member.leader = nil }
      return
    }
    leader.pending = nil
    operations[pending.operation].end = step
  }

  private func read(on member: Member) {
    guard let leader = member.leader, let lease = leader.engine.lease else { return }
    let start = step
    guard lease.isHeld(at: clock) || sabotage == .noLeaseCheck else { return }
    // A pause before or after the request is executed.
    if oneIn(4) { _ = weather(false) }
    // A reply waits until what it shows is durable.
    guard leader.pending == nil else { return }
    let value = leader.value
    if oneIn(4) { _ = weather(false) }
    guard lease.isHeld(at: clock) || sabotage == .noLeaseCheck else { return }
    operations.append(Operation(isWrite: false, value: value, start: start, end: step))
  }
}

/// Returns whether the operations on a register, whose writes have distinct values, can be put in an order in which each
/// takes effect between its start and its end, and each read returns the value of the last write before it.
///
/// With distinct values, that is so if no read returns a value that was not written yet, and if the spans of values, from
/// the first end of an operation with the value to the last start of one, neither overlap nor contain each other's
/// (Gibbons and Korach, 1997).
func isLinearizable(_ operations: [Simulation.Operation]) -> Bool {
  struct Span {
    var start = 0
    var writeStart = 0
    var firstEnd = Int.max
    var lastStart = Int.min
  }
  var spans: [Int: Span] = [0: Span(start: -1, writeStart: -1, firstEnd: -1, lastStart: -1)]
  let observed = Set(operations.filter { !$0.isWrite }.map(\.value))
  for operation in operations where operation.isWrite {
    // Without an end or a reader, it need not have taken effect.
    guard let end = operation.end ?? (observed.contains(operation.value) ? Int.max : nil) else { continue }
    spans[operation.value] = Span(writeStart: operation.start, firstEnd: end, lastStart: operation.start)
  }
  for operation in operations where !operation.isWrite {
    guard let end = operation.end, var span = spans[operation.value], end >= span.writeStart else { return false }
    span.firstEnd = min(span.firstEnd, end)
    span.lastStart = max(span.lastStart, operation.start)
    spans[operation.value] = span
  }
  // A zone is forward if one of its operations ends before another one starts: the register has the value in between.
  let forward = spans.values.filter { $0.firstEnd < $0.lastStart }.sorted { $0.firstEnd < $1.firstEnd }
  for (first, second) in zip(forward, forward.dropFirst()) where second.firstEnd < first.lastStart { return false }
  for span in spans.values where span.firstEnd >= span.lastStart {
    if forward.contains(where: { $0.firstEnd < span.lastStart && span.firstEnd < $0.lastStart }) { return false }
  }
  return true
}
