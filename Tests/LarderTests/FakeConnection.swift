import Glibc
import Platform
import Synchronization
import Wire

/// One connection of a fake server, on a thread of its own.
final class FakeConnection: Sendable {
  private let server: FakeServer
  private let socket: Descriptor

  init(_ server: FakeServer, _ socket: consuming Descriptor) {
    self.server = server
    self.socket = socket
  }

  private struct Answer {
    var frames: [[UInt8]]
    var credit: Int
  }

  func serve() {
    var input = ByteBuffer()
    var answers: [UInt32: Answer] = [:]
    while !server.isStopped {
      guard FakeServer.wait(socket.number) else { continue }
      let transfer = unsafe input.fill(65_536) { buffer -> (written: Int, result: Transfer) in
        let transfer = unsafe socket.receive(into: buffer)
        if case .moved(let count) = transfer { return (count, transfer) }
        return (0, transfer)
      }
      guard case .moved(let count) = transfer, count > 0 else { return }
      // How many requests came in one go says how many the client had in flight at least.
      var batch = 0
      while let request = next(&input) {
        batch += 1
        switch server.shared.withLock({ $0.script })?(request) ?? .answer {
        case .answer: answer(request, &answers)
        case .silence: break
        case .send(let bytes): send(bytes)
        case .hangUp(let bytes):
          send(bytes)
          return
        }
      }
      server.shared.withLock { $0.maxInFlight = max($0.maxInFlight, batch) }
    }
  }

  private func next(_ input: inout ByteBuffer) -> FakeServer.Request? {
    let found = input.withSpan { bytes -> (FrameHeader, [UInt8])? in
      guard case .frame(let header) = FrameScan(bytes, at: 0, largest: 1 << 20) else { return nil }
      return (header, bytes.extracting(header.body(at: 0)).toArray())
    }
    guard let (header, body) = found, let operation = Wire.Operation(rawValue: header.kind) else { return nil }
    input.consume(header.frameSize)
    let count = server.shared.withLock { shared in
      shared.counts[operation, default: 0] += 1
      return shared.counts[operation]!
    }
    return FakeServer.Request(operation: operation, store: header.detail, id: header.id, body: body, count: count)
  }

  func send(_ bytes: [UInt8]) {
    var place = 0
    while place < bytes.count {
      let sent = unsafe bytes.withUnsafeBytes { unsafe socket.send(UnsafeRawBufferPointer(rebasing: $0[place...])) }
      switch sent {
      case .moved(let count): place += count
      case .wouldBlock: usleep(1_000)
      case .failed: return
      }
    }
  }

  private func send(_ fill: (inout ByteBuffer) -> Void) {
    var output = ByteBuffer()
    fill(&output)
    send(output.toArray())
  }

  private func answer(_ request: FakeServer.Request, _ answers: inout [UInt32: Answer]) {
    let id = request.id
    let handle = server.shared.withLock { $0.handle }
    if request.operation.rawValue >= 16, request.store != handle {
      return send { $0.appendError(.storeUnknown, id: id) }
    }
    switch request.operation {
    case .hello: send { $0.appendReply(server.hello, id: id) }
    case .storeOpen:
      if request.body == Array("absent".utf8) {
        return send { $0.appendError(.storeUnknown, id: id, message: "no such store") }
      }
      send { output in
        let start = output.beginReply(id: id)
        output.append(OpenedStore(handle: handle, engine: "memory"))
        output.endFrame(start)
      }
    case .get:
      let entry = server.shared.withLock { $0.entries[String(decoding: request.body, as: UTF8.self)] }
      guard let entry else { return send { $0.appendError(.notFound, id: id) } }
      send { output in
        let start = output.beginReply(id: id)
        unsafe entry.value.withUnsafeBytes { value in
          unsafe output.appendEntry(
            kind: .single, revision: entry.revision, key: .init(start: nil, count: 0), value: value)
        }
        output.endFrame(start)
      }
    case .put:
      let revision = server.shared.withLock { shared in
        shared.revision += 1
        let body = unsafe request.body.span.bytes
        if let record = WriteRecord(body, at: 0) {
          shared.entries[body.extracting(record.key).toString()] = (
            shared.revision, body.extracting(record.value).toArray()
          )
        }
        return shared.revision
      }
      send { $0.appendReply(id: id, number: revision) }
    case .count:
      send { output in output.appendReply(id: id, number: UInt64(server.shared.withLock { $0.entries.count })) }
    case .all, .page, .getMany:
      answers[id] = Answer(frames: frames(), credit: 65_536)
      go(on: id, &answers)
    case .credit:
      answers[id]?.credit += Int(unsafe request.body.span.bytes.integer(at: 0, as: UInt32.self)!)
      go(on: id, &answers)
    case .cancel:
      if answers.removeValue(forKey: id) != nil { send { $0.appendError(.cancelled, id: id) } }
    default: send { $0.endFrame($0.beginReply(id: id)) }
    }
  }

  private func go(on id: UInt32, _ answers: inout [UInt32: Answer]) {
    while var answer = answers[id], answer.credit > 0 {
      let body = answer.frames.removeFirst()
      answer.credit -= body.count + Frame.headerSize
      answers[id] = answer.frames.isEmpty ? nil : answer
      server.shared.withLock { $0.framesSent += 1 }
      send { output in
        let start = output.beginReply(id: id, more: !answer.frames.isEmpty)
        output.append(body)
        output.endFrame(start)
      }
    }
  }

  /// All entries, a frame for each.
  private func frames() -> [[UInt8]] {
    let entries = server.shared.withLock { $0.entries }
    let frames = entries.keys.sorted().map { key -> [UInt8] in
      var body = ByteBuffer()
      let entry = entries[key]!
      unsafe Array(key.utf8).withUnsafeBytes { key in
        unsafe entry.value.withUnsafeBytes { value in
          unsafe body.appendEntry(kind: .single, revision: entry.revision, key: key, value: value)
        }
      }
      return body.toArray()
    }
    return frames.isEmpty ? [[]] : frames
  }
}
