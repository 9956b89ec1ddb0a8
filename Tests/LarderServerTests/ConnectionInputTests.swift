import Glibc
import Platform
import Storage
import TestSupport
import Testing
import Wire

@testable import LarderServer

/// How requests are put together from the pieces in which they arrive.
struct ConnectionInputTests {
  /// The sizes around which something changes: digits of a length, the size of a large frame, and of a read.
  private static let limits = [0, 10, 100, 1_000, 10_000, LargeFrame.minSize, ReadBatch.maxInputBytes, 100_000]

  private static func size(_ random: inout SeededGenerator) -> Int {
    max(0, limits.randomElement(using: &random)! + Int.random(in: -12...12, using: &random))
  }

  private static func word(_ random: inout SeededGenerator) -> [UInt8] {
    [UInt8](repeating: UInt8.random(in: 0x61...0x7A, using: &random), count: size(&random))
  }

  enum Spoken: CaseIterable {
    case native, resp, http

    var session: any Session {
      switch self {
      case .native: NativeSession()
      case .resp: RESPSession()
      case .http: HTTPSession()
      }
    }

    fileprivate func request(_ random: inout SeededGenerator) -> [UInt8] {
      switch self {
      case .native: return Request.put("key", word(&random), id: 2)
      case .resp:
        let words = (0..<Int.random(in: 1...5, using: &random)).map { _ in word(&random) }
        return TestClient.encoded(words)
      case .http:
        let body = word(&random)
        let head = "PUT /v1/stores/a/entries/key HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.count)\r\n\r\n"
        return Array(head.utf8) + body
      }
    }
  }

  /// Returns offsets in requests: around where one begins or a line ends, around limits, or anywhere.
  private static func cuts(_ requests: [[UInt8]], of bytes: [UInt8], _ random: inout SeededGenerator) -> [Int] {
    let starts = requests.reduce(into: [0]) { starts, request in starts.append(starts[starts.count - 1] + request.count)
    }
    let lines = ends(ofLinesIn: bytes)
    return (0..<Int.random(in: 0...6, using: &random)).map { _ in
      let around = [starts, lines, limits].randomElement(using: &random)!.randomElement(using: &random) ?? 0
      let cut =
        Bool.random(using: &random)
        ? around + .random(in: -12...12, using: &random) : .random(in: bytes.indices, using: &random)
      return min(max(0, cut), bytes.count)
    }.sorted()
  }

  private static func joined(_ requests: [[UInt8]]) -> [UInt8] { requests.reduce(into: []) { $0 += $1 } }

  private static func ends(ofLinesIn bytes: [UInt8]) -> [Int] {
    unsafe bytes.withUnsafeBytes { bytes in
      var (ends, start) = ([Int](), 0)
      while let base = bytes.baseAddress, let end = unsafe memchr(base + start, 0x0A, bytes.count - start) {
        unsafe ends.append(UnsafeRawPointer(end) - base)
        start = ends[ends.count - 1] + 1
      }
      return ends
    }
  }

  @Test(arguments: Spoken.allCases)
  func `requests of any size that are cut anywhere arrive whole, and no others`(_ spoken: Spoken) throws {
    var random = SeededGenerator.announced()
    for _ in 0..<400 {
      let requests = (0..<Int.random(in: 1...4, using: &random)).map { _ in spoken.request(&random) }
      let bytes = Self.joined(requests)
      let cuts = Self.cuts(requests, of: bytes, &random)
      let pieces = zip([0] + cuts, cuts + [bytes.count]).map { bytes[$0..<$1] }
      let isSame = try Self.read(pieces, spoken.session) == requests
      #expect(isSame, "sizes \(requests.map(\.count)), cut at \(cuts)")
    }
  }

  @Test func `a request whose last length is cut arrives whole at every cut`() throws {
    for last in [9_999, 10_000, 65_535, 99_999, 100_000] {
      let head = Array("*3\r\n$4\r\nMSET\r\n$33000\r\n".utf8) + [UInt8](repeating: 0x61, count: 33_000)
      let request = head + Array("\r\n$\(last)\r\n".utf8) + [UInt8](repeating: 0x62, count: last) + [0x0D, 0x0A]
      for first in [20_000, 32_760, 32_767, 32_768] {
        for cut in head.count - 4...head.count + 12 {
          let pieces = [request[..<first], request[first..<cut], request[cut..<cut + 1], request[(cut + 1)...]]
          let isSame = try Self.read(pieces, RESPSession()) == [request]
          #expect(isSame, "\(last) bytes, cut at \(first) and \(cut)")
        }
      }
    }
  }

  @Test func `requests that wait behind a large one take the memory that they need`() throws {
    let request = Request.put("key", [UInt8](repeating: 1, count: 40_000), id: 2)
    let bytes = request + request + request + request
    let cuts = Array(stride(from: 0, to: bytes.count, by: 20_000))
    let pieces = zip(cuts, cuts.dropFirst() + [bytes.count]).map { bytes[$0..<$1] }
    let isSame = try Self.read(pieces, NativeSession(), waitsAfter: 1) == [request, request, request, request]
    #expect(isSame)
  }

  // MARK: Reading

  /// Reads pieces as an event loop does, and returns the requests in them.
  /// - Parameter maxCount: The number of requests that are executed before everything has arrived.
  private static func read(
    _ pieces: [ArraySlice<UInt8>], _ session: any Session, waitsAfter maxCount: Int = .max
  ) throws -> [[UInt8]] {
    let totals = BufferTotals(limits: ServerLimits(), workerCount: 1, memory: MemoryBudget())
    var input = ConnectionInput(InputMemory(totals, ConnectionSharer(Sharer(.anonymous, connection: 1))) {}, session)
    let channel = ByteChannel(Descriptor(owning: -1), layer: PieceLayer(pieces))
    let maxSize = ServerLimits().maxFrameBytes
    var requests: [[UInt8]] = []
    var batch = [UInt8](repeating: 0, count: ReadBatch.maxInputBytes)
    func execute(_ bytes: RawSpan, until maxCount: Int) -> Int {
      var position = 0
      while requests.count < maxCount,
        case .whole(let size) = session.scan(bytes.extracting(position...), maxSize: maxSize)
      {
        requests.append(bytes.extracting(position..<position + size).toArray())
        position += size
      }
      return position
    }
    while true {
      if input.expectsMore {
        let (transfer, _) = try input.receive(from: channel)
        guard case .moved(let count) = transfer, count > 0 else { break }
        guard input.mayBeComplete, requests.count < maxCount else { continue }
        let consumed = unsafe execute(RawSpan(_unsafeBytes: input.bytes), until: maxCount)
        _ = input.remove(consumed, maxFrameSize: maxSize)
      } else {
        let transfer = unsafe batch.withUnsafeMutableBytes { unsafe channel.receive(into: $0) }
        guard case .moved(let count) = transfer, count > 0 else { break }
        let bytes = unsafe batch.span.bytes.extracting(..<count)
        let consumed = execute(bytes, until: maxCount)
        if consumed < count { try input.append(bytes.extracting(consumed...), maxFrameSize: maxSize) }
      }
    }
    let consumed = unsafe execute(RawSpan(_unsafeBytes: input.bytes), until: .max)
    _ = input.remove(consumed, maxFrameSize: maxSize)
    let isEmpty = input.isEmpty
    #expect(isEmpty)
    return requests
  }
}

/// A layer that receives pieces.
private final class PieceLayer: ChannelLayer {
  private var pieces: [ArraySlice<UInt8>]

  init(_ pieces: [ArraySlice<UInt8>]) { self.pieces = pieces.filter { !$0.isEmpty }.reversed() }

  var holdsInput: Bool { !pieces.isEmpty }
  var peerCertificate: PeerCertificate? { nil }
  var events: ChannelEvents { ChannelEvents() }

  func continueHandshake(over socket: borrowing Descriptor) -> ChannelProgress { .done }
  func continueShutdown(over socket: borrowing Descriptor) -> ChannelProgress { .done }

  func receive(into room: UnsafeMutableRawBufferPointer, from socket: borrowing Descriptor) -> ChannelTransfer {
    guard let piece = pieces.popLast() else { return .moved(0) }
    let count = min(piece.count, room.count)
    unsafe room.copyBytes(from: piece.prefix(count))
    if count < piece.count { pieces.append(piece.dropFirst(count)) }
    return .moved(count)
  }

  func send(_ bytes: UnsafeRawBufferPointer, to socket: borrowing Descriptor) -> ChannelTransfer { .moved(bytes.count) }
}
