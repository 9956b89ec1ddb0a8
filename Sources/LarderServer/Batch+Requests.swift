import Platform
import Storage
import Wire

/// Decodes what a client sent and answers it: `Protocol/wire.md` §6 and §9.
extension Batch {
  /// Handles the frames in `bytes` until they end, the output is full, or the connection is done for.
  /// - Parameter lookedAt: how far `lookAhead` has looked already.
  /// - Returns: how many bytes are dealt with. What is left is the beginning of a frame, or waits for the output to drain.
  mutating func handle(
    _ bytes: RawSpan, of connection: inout Connection, _ server: ServerState, lookedAt: Int = 0
  ) -> Int {
    room = limits.outputBytes - connection.outbox.count - connection.gated.count
    let counted = tally.requests
    defer { connection.figures.requests.count(Int(tally.requests &- counted)) }
    var place = 0
    while connection.executes, !isFull {
      switch FrameScan(
        bytes, at: place, largest: connection.phase == .greeting ? Frame.maxSizeBeforeHello : limits.maxFrameBytes)
      {
      case .partial:
        return place
      case .invalid(let length):
        endConnection(&connection, .frameLength, "no frame here has a length of \(length)")
      case .frame(let header):
        if header.id == 0 {
          endConnection(&connection, .malformed, "a request's id is never 0")
        } else if connection.phase == .greeting {
          greet(header, bytes.extracting(header.body(at: place)), &connection, server)
        } else if header.flags == 0, let opened = connection.stores[header.detail],
          opened.permitted.contains(header.kind)
        {
          place = run(header, bytes, at: place, lookedAt: lookedAt, of: &connection, on: opened)
          continue
        } else {
          handle(header, bytes.extracting(header.body(at: place)), &connection, server)
        }
        count(header.kind)
        place += header.frameSize
      }
    }
    // What a client sends to a connection that is at its end is never executed, so it is dealt with.
    return connection.executes ? place : bytes.byteCount
  }

  /// Sends a notice, behind which nothing is executed.
  mutating func endConnection(_ connection: inout Connection, _ code: ErrorCode, _ message: String) {
    output.appendError(code, id: 0, message: message)
    outcome = code.outcome.rawValue
    connection.phase = .closing
  }

  private mutating func greet(
    _ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection, _ server: ServerState
  ) {
    guard header.kind == Operation.hello.rawValue else {
      return endConnection(&connection, .helloExpected, "a connection begins with a hello")
    }
    do throws(ClientHello.Fault) {
      let hello = try ClientHello(body: body)
      guard hello.versions.overlaps(ProtocolVersion.lowest...ProtocolVersion.highest) else {
        let range = "\(ProtocolVersion.lowest) to \(ProtocolVersion.highest)"
        fail(.versionNotSupported, header.id, "this server speaks versions \(range) of the protocol")
        connection.phase = .closing
        return
      }
      connection.grants = server.grants(connection)
      guard !connection.grants.isNothing else {
        refuse(Self.use, header.id, connection, server)
        connection.phase = .closing
        return
      }
      connection.phase = .open
      connection.credit = min(Int(hello.credit), Answer.maxCredit)
      connection.figures.nameClient(hello.name)
      output.appendReply(
        ServerHello(
          version: min(hello.versions.upperBound, ProtocolVersion.highest),
          maxFrameSize: UInt32(limits.maxFrameBytes),
          maxValueSize: UInt32(maxValueSize), maxKeySize: UInt16(Key.largest),
          maxOpenStores: UInt16(limits.openStores),
          maxRequestsInFlight: UInt32(limits.requestsInFlight), maxKeyCount: UInt32(limits.keysInRequest),
          name: Server.name),
        id: header.id)
    } catch {
      switch error {
      case .noMagic: endConnection(&connection, .helloExpected, "a hello begins with the bytes LRDR")
      case .malformed:
        fail(.malformed, header.id, "the hello is not of its form")
        connection.phase = .closing
      }
    }
  }

  /// All requests but those on the entries of an open store.
  private mutating func handle(
    _ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection, _ server: ServerState
  ) {
    letGo()
    let id = header.id
    guard let operation = Operation(rawValue: header.kind) else {
      return fail(.unknownOperation, id, "there is no operation \(header.kind)")
    }
    if operation == .credit { return addCredit(header, body, &connection) }
    if operation == .cancel { return cancel(header, body, &connection) }
    guard header.flags == 0 else { return fail(.malformed, id) }
    let takesStore =
      Self.isOnEntries(header.kind) || operation == .storeClose || (operation == .stats && header.detail != 0)
    guard takesStore || header.detail == 0 else { return fail(.malformed, id, "the operation takes no store") }
    if takesStore, connection.stores[header.detail] == nil {
      return fail(.storeUnknown, id, "no store is open under handle \(header.detail)")
    }
    if let store = connection.stores[header.detail]?.store {
      guard permits(operation, on: store.name, id, connection, server) else { return }
    } else if !operation.namesStoreInBody {
      guard permits(operation, id, connection, server) else { return }
    }
    do throws(StorageError) {
      switch operation {
      case .ping:
        guard body.byteCount == 0 else { return fail(.malformed, id) }
        output.endFrame(output.beginReply(id: id))
      case .stats: stats(header, body, &connection, server)
      case .slowLog: tellSlowLog(id, body, server)
      case .connections: tellConnections(id, body, server)
      case .storeOpen: try openStore(id, body, &connection, server)
      case .storeClose:
        guard body.byteCount == 0 else { return fail(.malformed, id) }
        connection.stores.close(header.detail)
        output.endFrame(output.beginReply(id: id))
      case .storeCreate:
        guard body.byteCount <= 2 * 255 else {
          return fail(.illegalArgument, id, "there is no engine with such a long name")
        }
        guard let creation = StoreCreation(body) else { return fail(.malformed, id) }
        let name = try StoreName(creation.name)
        guard permits(operation, on: name, id, connection, server) else { return }
        try server.stores.create(name, StoreSpecification(creation.specification))
        output.endFrame(output.beginReply(id: id))
      case .storeList: listStores(id, body, connection, server)
      case .storeDrop:
        let name = try name(in: body)
        guard permits(operation, on: name, id, connection, server) else { return }
        try server.stores.drop(name)
        output.endFrame(output.beginReply(id: id))
      default: fail(.malformed, id)
      }
    } catch {
      fail(ErrorCode(error), id, "\(error)")
    }
  }

  private func addCredit(_ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection) {
    guard header.flags == 0, header.detail == 0, body.byteCount == 4, let amount = body.integer(at: 0, as: UInt32.self),
      let index = connection.answers.firstIndex(where: { $0.id == header.id })
    else { return }
    connection.answers[index].credit = min(connection.answers[index].credit + Int(amount), Answer.maxCredit)
  }

  private mutating func cancel(_ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection) {
    guard header.flags == 0, header.detail == 0, body.byteCount == 0,
      let index = connection.answers.firstIndex(where: { $0.id == header.id })
    else { return }
    connection.answers.remove(at: index).end()
    fail(.cancelled, header.id)
  }

  private mutating func stats(
    _ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection, _ server: ServerState
  ) {
    guard body.byteCount == 0 else { return fail(.malformed, header.id) }
    let figures: [Figure]
    if let store = connection.stores[header.detail]?.store {
      let ofStore: [Figure]? = store.access { $0.isDropped ? nil : ServerState.figures(of: &$0, now: now) }
      guard let ofStore else { return fail(.storeUnknown, header.id, "store \(store.name) was dropped") }
      figures = ofStore + (store.commitWriter?.figures ?? []).map { Figure($0.name, $0.value) }
    } else {
      figures = server.figures()
    }
    let start = output.beginReply(id: header.id)
    for figure in figures { output.append(figure) }
    output.endFrame(start)
  }

  private mutating func tellSlowLog(_ id: UInt32, _ body: RawSpan, _ server: ServerState) {
    guard body.byteCount == 0 else { return fail(.malformed, id) }
    let now = monotonicMilliseconds()
    let start = output.beginReply(id: id)
    for entry in server.slowLog.withLock({ $0.latest }) {
      output.append(
        SlowWakeUp(
          millisecondsAgo: now - entry.ended, nanoseconds: entry.nanoseconds, receivedBytes: entry.receivedBytes,
          requests: entry.requests, operations: entry.operations, store: entry.store))
    }
    output.endFrame(start)
  }

  private mutating func tellConnections(_ id: UInt32, _ body: RawSpan, _ server: ServerState) {
    guard body.byteCount == 4, let most = body.integer(at: 0, as: UInt32.self) else { return fail(.malformed, id) }
    let now = monotonicMilliseconds()
    var commands: [Int32: String] = [:]
    let start = output.beginReply(id: id)
    for figures in server.registry.busiest(min(Int(most), ConnectionRegistry.mostTold)) {
      output.append(BusyConnection(figures, now: now, &commands))
    }
    output.endFrame(start)
  }

  private mutating func openStore(
    _ id: UInt32, _ body: RawSpan, _ connection: inout Connection, _ server: ServerState
  ) throws(StorageError) {
    let name = try name(in: body)
    guard permits(.storeOpen, on: name, id, connection, server) else { return }
    let store = try server.stores.open(name)
    let right = connection.grants.right(on: name)
    guard let handle = connection.stores.open(store, permitting: right, limit: limits.openStores) else {
      return fail(.tooManyStores, id, "\(limits.openStores) stores are open on this connection; close one first")
    }
    let start = output.beginReply(id: id)
    output.append(OpenedStore(handle: handle, engine: store.engine.rawValue))
    output.endFrame(start)
  }

  /// The store's name that is all of a body. One that is too long is refused before it is made text.
  private func name(in body: RawSpan) throws(StorageError) -> StoreName {
    guard body.byteCount <= StoreName.maximumLength else { throw .invalidStoreName("\(body.byteCount) bytes") }
    return try StoreName(body.toString())
  }

  private mutating func listStores(
    _ id: UInt32, _ body: RawSpan, _ connection: borrowing Connection, _ server: ServerState
  ) {
    guard body.byteCount == 0 else { return fail(.malformed, id) }
    let start = output.beginReply(id: id)
    for store in server.stores.list() where connection.grants.right(on: store.name) >= .read {
      let entries = store.access { $0.count(now: now) }
      output.append(
        ListedStore(name: store.name.text, specification: "\(store.specification)", entries: UInt64(entries)))
    }
    output.endFrame(start)
  }
}
