import Platform

/// A layer that does what encryption would do to a connection, and does the inconvenient parts of it often.
///
/// Both sides exchange greetings, from which they derive a rolling key for each direction. Bytes are sent in frames, in
/// writes of random sizes. Received bytes are kept back and delivered in random amounts. Now and then a side renews its
/// key: it then has to read the peer's consent before it sends more, and the peer has to write that before it receives
/// more. A frame announces the end; a stream that ends without one is an error.
package final class ScramblingLayer: ChannelLayer {
  package enum Side: Sendable {
    case client, server
  }

  private enum FrameKind: UInt8 {
    case data, renewal, consent, end
  }

  private enum Consent {
    case none
    /// The peer has asked for it.
    case owed
    /// It is behind other output.
    case unsent
  }

  private static let magic = Array("SCRAMBLE".utf8)
  private static let greetingSize = 16
  private static let finish: UInt8 = 6
  /// What a peer gets that sends no greeting, in clear text.
  package static let refusal = "this is no greeting\n"

  private let side: Side
  private let counters: Counters
  private var random: SeededGenerator
  private var failure: ChannelError?
  private var hasReportedFailure = false

  // The handshake.
  private let seed: UInt64
  private let renewsKey: Bool
  private var hasSentGreeting = false
  private var peerSeed: UInt64?
  private var isOpen = false

  // Output.
  private var outputKey = RollingKey()
  /// Scrambled bytes that the socket has not taken.
  private var output = ByteQueue()
  /// The number of bytes that the output has of a `send` that would block.
  private var unsentCount = 0
  private var bytesUntilRenewal = 0
  private var awaitsConsent = false
  private var hasShutDown = false

  // Input.
  private var inputKey = RollingKey()
  /// Bytes that the socket has delivered; unscrambled once the handshake is done.
  private var input = ByteQueue()
  /// The contents of frames.
  private var contents = ByteQueue()
  private var consent = Consent.none
  /// Whether the last `receive` would block, and nothing has changed since.
  private var isBlocked = false
  private var hasEnded = false
  private var hasReportedEnd = false

  private init(_ side: Side, _ random: SeededGenerator, _ counters: Counters, renewsKey: Bool) {
    self.side = side
    self.renewsKey = renewsKey
    self.random = random
    self.counters = counters
    seed = self.random.next()
  }

  /// Returns a factory of layers whose behavior depends on a seed.
  ///
  /// - Parameter renewsKey: Whether they renew their keys. A layer that waits for the consent holds whatever arrives
  ///   before it, so that its connection can't stop a peer that sends without reading.
  package static func factory(
    _ side: Side, seed: UInt64, _ counters: Counters, renewsKey: Bool = true
  ) -> ChannelLayerFactory {
    { ScramblingLayer(side, SeededGenerator(seed: seed &+ counters.nextLayer()), counters, renewsKey: renewsKey) }
  }

  // MARK: Polling

  package var events: ChannelEvents {
    let mustWrite = consent != .none || (!output.isEmpty && (!isOpen || hasShutDown))
    return ChannelEvents(
      receiving: mustWrite ? .writing : .reading,
      sending: awaitsConsent && unsentCount == 0 && output.isEmpty ? .reading : .writing)
  }

  package var holdsInput: Bool {
    isOpen && !isBlocked && !hasReportedFailure && !hasReportedEnd
  }

  package var peerCertificate: PeerCertificate? { nil }

  // MARK: The handshake

  package func continueHandshake(over socket: borrowing Descriptor) -> ChannelProgress {
    if let failure { return .failed(failure) }
    while true {
      if side == .client || peerSeed != nil, !hasSentGreeting {
        hasSentGreeting = true
        output.append(Self.magic)
        output.append((0..<8).map { UInt8(truncatingIfNeeded: seed >> ($0 * 8)) })
      }
      if let failure = flush(to: socket) { return .failed(failure) }
      guard output.isEmpty else { return .waiting }
      if takeGreeting(socket) { continue }
      if let failure { return .failed(failure) }
      if takeFinish() {
        if Bool.random(using: &random), let failure = flush(to: socket) { return .failed(failure) }
        counters.add(.handshakes)
        if !input.isEmpty { counters.add(.inputBehindHandshakes) }
        return .done
      }
      if let failure { return .failed(failure) }
      switch fill(from: socket) {
      case .moved(0): return .failed(fail("the peer has ended the handshake"))
      case .moved: continue
      case .wouldBlock: return .waiting
      case .failed(let error): return .failed(error)
      }
    }
  }

  /// Takes the peer's greeting, if it has arrived.
  /// - Returns: Whether it has arrived now.
  private func takeGreeting(_ socket: borrowing Descriptor) -> Bool {
    guard peerSeed == nil else { return false }
    guard zip(input.bytes, Self.magic).allSatisfy({ $0 == $1 }) else {
      _ = unsafe Array(Self.refusal.utf8).withUnsafeBytes { unsafe socket.send($0) }
      _ = fail("the peer's greeting is malformed")
      return false
    }
    guard input.count >= Self.greetingSize else { return false }
    let peerSeed = input.bytes.dropFirst(8).prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    input.consume(Self.greetingSize)
    self.peerSeed = peerSeed
    return true
  }

  /// Ends the handshake: the client announces that, in half of all cases together with the first bytes that it sends.
  /// - Returns: False if the other greeting, or the client's announcement, is missing.
  private func takeFinish() -> Bool {
    guard let peerSeed, hasSentGreeting else { return false }
    switch side {
    case .client: output.append([Self.finish])
    case .server:
      guard let byte = input.bytes.first else { return false }
      input.consume(1)
      guard byte == Self.finish else {
        _ = fail("the peer has not finished the handshake")
        return false
      }
    }
    let seeds = side == .client ? (seed, peerSeed) : (peerSeed, seed)
    let (toServer, toClient) = (RollingKey(seeds.0 ^ seeds.1), RollingKey(seeds.0 &+ seeds.1 &* 3))
    (outputKey, inputKey) = side == .client ? (toServer, toClient) : (toClient, toServer)
    input.scramble(from: 0, with: &inputKey)
    isOpen = true
    renewLater()
    return true
  }

  // MARK: Sending

  package func send(_ bytes: UnsafeRawBufferPointer, to socket: borrowing Descriptor) -> ChannelTransfer {
    if let failure { return .failed(failure) }
    if hasShutDown { return .failed(fail("bytes were sent after the end")) }
    if unsentCount == 0 {
      if let failure = readConsent(from: socket) { return .failed(failure) }
      if awaitsConsent { return .wouldBlock }
      unsentCount = min(bytes.count, Int.random(in: 1...8_191, using: &random))
      append(.data, unsafe Array(bytes.prefix(unsentCount)))
      bytesUntilRenewal -= unsentCount
      if renewsKey, bytesUntilRenewal <= 0, !hasEnded {
        append(.renewal)
        awaitsConsent = true
        renewLater()
      }
    }
    giveConsent()
    if let failure = flush(to: socket) { return .failed(failure) }
    guard output.isEmpty else { return .wouldBlock }
    let sentCount = min(unsentCount, bytes.count)
    unsentCount -= sentCount
    return .moved(sentCount)
  }

  /// Reads until the peer consents to a new key. It may ask for the same, and must get it then.
  private func readConsent(from socket: borrowing Descriptor) -> ChannelError? {
    while awaitsConsent {
      giveConsent()
      if let failure = flush(to: socket) { return failure }
      if takeFrame() { continue }
      switch fill(from: socket) {
      case .moved(0): return fail("the stream was truncated")
      case .moved: isBlocked = false
      case .wouldBlock:
        counters.add(.waitsToReadBeforeSending)
        return nil
      case .failed(let error): return error
      }
    }
    return nil
  }

  private func renewLater() { bytesUntilRenewal = Int.random(in: 1...65_536, using: &random) }

  /// Writes the consent that the peer waits for.
  private func giveConsent() {
    guard consent == .owed else { return }
    append(.consent)
    consent = .unsent
    isBlocked = false
  }

  package func continueShutdown(over socket: borrowing Descriptor) -> ChannelProgress {
    if let failure { return .failed(failure) }
    guard isOpen else { return .failed(fail("the handshake is not done")) }
    precondition(unsentCount == 0, "bytes wait to be sent")
    if !hasShutDown {
      giveConsent()
      append(.end)
      hasShutDown = true
    }
    if let failure = flush(to: socket) { return .failed(failure) }
    return output.isEmpty ? .done : .waiting
  }

  private func append(_ kind: FrameKind, _ contents: [UInt8] = []) {
    let start = output.count
    output.append([kind.rawValue, UInt8(contents.count & 0xFF), UInt8(contents.count >> 8)] + contents)
    output.scramble(from: start, with: &outputKey)
  }

  /// Writes the output in pieces, until the socket takes no more.
  private func flush(to socket: borrowing Descriptor) -> ChannelError? {
    while !output.isEmpty {
      let size = Int.random(in: 1...16_384, using: &random)
      switch output.send(atMost: size, to: socket) {
      case .moved(let count):
        if count < output.count { counters.add(.splitWrites) }
        output.consume(count)
      case .wouldBlock: return nil
      case .failed(let error): return fail(.system(error))
      }
    }
    if consent == .unsent {
      consent = .none
      isBlocked = false
    }
    return nil
  }

  // MARK: Receiving

  package func receive(
    into room: UnsafeMutableRawBufferPointer, from socket: borrowing Descriptor
  ) -> ChannelTransfer {
    isBlocked = false
    // Now the consent that an earlier call has waited for is written.
    giveConsent()
    if consent != .none, failure == nil, let failure = flush(to: socket) { return .failed(failure) }
    while true {
      if let failure {
        hasReportedFailure = true
        return .failed(failure)
      }
      if !contents.isEmpty { return unsafe .moved(deliver(into: room)) }
      if consent != .none {
        counters.add(.waitsToWriteBeforeReceiving)
        isBlocked = true
        return .wouldBlock
      }
      if hasEnded {
        if !hasReportedEnd { counters.add(.ends) }
        hasReportedEnd = true
        return .moved(0)
      }
      if takeFrame() { continue }
      switch fill(from: socket) {
      case .moved(0): _ = fail("the stream was truncated")
      case .moved, .failed: continue
      case .wouldBlock:
        isBlocked = true
        return .wouldBlock
      }
    }
  }

  /// Delivers some of the contents, and keeps the rest back.
  private func deliver(into room: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(room.count, contents.count, Int.random(in: 1...16_384, using: &random))
    unsafe room.copyBytes(from: contents.bytes.prefix(count))
    contents.consume(count)
    if !contents.isEmpty { counters.add(.deliveriesWithRest) }
    return count
  }

  /// Reads what has arrived at the socket.
  private func fill(from socket: borrowing Descriptor) -> ChannelTransfer {
    let start = input.count
    switch input.receive(from: socket) {
    case .moved(let count):
      if isOpen { input.scramble(from: start, with: &inputKey) }
      return .moved(count)
    case .wouldBlock: return .wouldBlock
    case .failed(let error): return .failed(fail(.system(error)))
    }
  }

  private var frameSize: Int { Int(input.bytes[input.start + 1]) + Int(input.bytes[input.start + 2]) << 8 + 3 }
  private var hasWholeFrame: Bool { input.count >= 3 && input.count >= frameSize }

  /// Takes a frame that has arrived, unless it must wait.
  private func takeFrame() -> Bool {
    guard !hasEnded, consent == .none, hasWholeFrame, failure == nil else { return false }
    let size = frameSize
    let frame = input.bytes.prefix(size)
    switch FrameKind(rawValue: frame[input.start]) {
    case .data: contents.append(Array(frame.dropFirst(3)))
    case .renewal: if !hasShutDown { consent = .owed }
    case .consent: awaitsConsent = false
    case .end:
      hasEnded = true
      awaitsConsent = false
    case nil: _ = fail("a frame is malformed")
    }
    input.consume(size)
    return true
  }

  // MARK: Failures

  private func fail(_ error: ChannelError) -> ChannelError {
    failure = error
    isBlocked = false
    return error
  }

  private func fail(_ reason: String) -> ChannelError { fail(.layer(reason)) }
}

/// A key stream: the high bytes of a linear congruential generator.
private struct RollingKey {
  private var state: UInt32

  init(_ seed: UInt64 = 0) { state = UInt32(truncatingIfNeeded: seed ^ seed >> 32) }

  mutating func next() -> UInt8 {
    state = state &* 1_664_525 &+ 1_013_904_223
    return UInt8(truncatingIfNeeded: state >> 24)
  }
}

/// Bytes that are appended at the end and consumed at the beginning.
private struct ByteQueue {
  /// Room for what is received.
  private static let zeros = [UInt8](repeating: 0, count: 1 << 16)

  private var storage: [UInt8] = []
  private(set) var start = 0

  var bytes: ArraySlice<UInt8> { storage[start...] }
  var count: Int { storage.count - start }
  var isEmpty: Bool { count == 0 }

  mutating func append(_ bytes: [UInt8]) { storage += bytes }

  mutating func consume(_ count: Int) {
    start += count
    if start == storage.count || start > 1 << 20 {
      storage.removeFirst(start)
      start = 0
    }
  }

  /// Scrambles the bytes from an offset on, or unscrambles them.
  mutating func scramble(from offset: Int, with key: inout RollingKey) {
    for index in start + offset..<storage.count { storage[index] ^= key.next() }
  }

  func send(atMost size: Int, to socket: borrowing Descriptor) -> Transfer {
    let piece = start..<min(storage.count, start + size)
    return unsafe storage.withUnsafeBytes { unsafe socket.send(UnsafeRawBufferPointer(rebasing: $0[piece])) }
  }

  mutating func receive(from socket: borrowing Descriptor) -> Transfer {
    let size = Self.zeros.count
    let previousCount = storage.count
    storage += Self.zeros
    let transfer = unsafe storage.withUnsafeMutableBytes {
      unsafe socket.receive(into: UnsafeMutableRawBufferPointer(rebasing: $0[previousCount...]))
    }
    let count = if case .moved(let count) = transfer { count } else { 0 }
    storage.removeLast(size - count)
    return transfer
  }
}
