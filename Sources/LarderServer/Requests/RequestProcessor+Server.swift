import Platform
import Storage
import Wire

/// All requests except those on the entries of an open store: `Protocol/wire.md` §6.1 to §6.3, and their access control
/// (§10).
extension RequestProcessor {
  /// Answers the first request of a connection, which must be a hello.
  /// - Returns: nil if the connection pauses first.
  mutating func greet(
    _ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection, into replies: inout ReplyBuffer
  ) -> RequestResult? {
    guard header.kind == Operation.hello.rawValue else {
      return endConnection(
        &connection, .helloExpected, "the first request of a connection must be a hello", into: &replies)
    }
    let hello: ClientHello
    do throws(ClientHello.FormatError) { hello = try ClientHello(body: body) } catch {
      switch error {
      case .noMagic:
        return endConnection(
          &connection, .helloExpected, "a hello must begin with the bytes LRDR", into: &replies)
      case .malformed:
        connection.phase = .closing
        return replies.fail(.malformed, header.id, BodyFlaw.ofHello(body))
      }
    }
    guard hello.versions.overlaps(ProtocolVersion.min...ProtocolVersion.max) else {
      let range = "\(ProtocolVersion.min) to \(ProtocolVersion.max)"
      connection.phase = .closing
      return replies.fail(.versionNotSupported, header.id, "this server supports versions \(range) of the protocol")
    }
    connection.grants = server.accessControl.grants(for: connection)
    guard !connection.grants.isNothing else {
      let result = refuse(AccessControl.useServer, header.id, &connection, into: &replies)
      if result != nil { connection.phase = .closing }
      return result
    }
    connection.phase = .open
    connection.credit = min(Int(hello.credit), ReplyStream.maxCredit)
    connection.figures.setClientName(hello.name)
    replies.bytes.appendReply(
      ServerHello(
        version: min(hello.versions.upperBound, ProtocolVersion.max), features: hello.features & Features.all,
        maxFrameSize: UInt32(limits.maxFrameBytes),
        maxValueSize: UInt32(maxValueSize), maxKeySize: UInt16(Key.maxSize),
        maxOpenStores: UInt16(limits.maxOpenStores),
        maxRequestsInFlight: UInt32(limits.maxRequestsInFlight), maxKeyCount: UInt32(limits.maxKeysPerRequest),
        name: Server.name),
      id: header.id)
    return RequestResult()
  }

  /// Executes a request that doesn't run under a store's lock, and rejects requests on entries that can't be executed.
  /// - Returns: nil if the connection pauses first.
  mutating func executeOnServer(
    _ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection, into replies: inout ReplyBuffer
  ) -> RequestResult? {
    let id = header.id
    guard let operation = Operation(rawValue: header.kind) else {
      return replies.fail(.unknownOperation, id, "unknown operation \(header.kind)")
    }
    if operation == .credit { return addCredit(header, body, &connection) }
    if operation == .cancel { return cancel(header, body, &connection, into: &replies) }
    guard header.flags == 0 else { return replies.fail(.malformed, id, "byte 5 of a request must be 0") }
    let descriptor = operation.descriptor
    let takesStore = descriptor.takesStore || (descriptor.target == .storeOrServer && header.detail != 0)
    guard takesStore || header.detail == 0 else {
      return replies.fail(.malformed, id, "this operation takes no store handle")
    }
    if takesStore, connection.stores[header.detail] == nil {
      return replies.fail(.storeUnknown, id, "no store is open under handle \(header.detail)")
    }
    if let store = connection.stores[header.detail]?.store {
      if !permits(operation, on: store.name, connection) {
        return refuse(Self.action(operation, on: store.name), id, &connection, into: &replies)
      }
    } else if descriptor.target != .namedStore, connection.grants.onAll < descriptor.right {
      return refuse("ask the server for \(operation.name)", id, &connection, into: &replies)
    }
    do throws(StorageError) {
      switch operation {
      case .ping:
        guard body.byteCount == 0 else { return replies.fail(.malformed, id, BodyFlaw.ofEmpty(body)) }
        return succeed(id, into: &replies)
      case .stats: return stats(header, body, connection, into: &replies)
      case .slowLog: return slowLog(id, body, into: &replies)
      case .connections: return connections(id, body, into: &replies)
      case .storeOpen: return try openStore(id, body, &connection, into: &replies)
      case .storeClose:
        guard body.byteCount == 0 else { return replies.fail(.malformed, id, BodyFlaw.ofEmpty(body)) }
        connection.stores.close(header.detail)
        return succeed(id, into: &replies)
      case .find, .aggregate, .changeMatching:
        guard let store = connection.stores[header.detail]?.store else { break }
        return startJob(operation, body, id, &connection, store, into: &replies)
      case .indexEnsure, .indexDelete, .indexList:
        guard let store = connection.stores[header.detail]?.store else { break }
        // Another one may have its name by now.
        guard !store.access({ $0.isDropped }) else { throw .storeDropped }
        switch operation {
        case .indexEnsure: return ensureIndex(header, body, &connection, store, into: &replies)
        case .indexDelete: return deleteIndex(header, body, &connection, store, into: &replies)
        default: return listIndexes(body, id, store, into: &replies)
        }
      case .uploadBegin: return beginUpload(body, id, &connection, into: &replies)
      case .uploadPart: return addUploadPart(body, id, &connection, into: &replies)
      case .uploadDiscard: return discardUpload(body, id, &connection, into: &replies)
      case .storeCreate: return try createStore(header, body, &connection, into: &replies)
      case .storeList: return listStores(id, body, connection, into: &replies)
      case .storeDrop:
        let name = try decodeStoreName(body)
        guard permits(operation, on: name, connection) else {
          return refuse(Self.action(operation, on: name), id, &connection, into: &replies)
        }
        return change(.drop(name), header, &connection, store: name.text)
      default: break
      }
      // Only a second hello is left.
      return replies.fail(.malformed, id, "this connection has had its hello")
    } catch {
      return replies.fail(error, id)
    }
  }

  /// Appends a reply with an empty body.
  mutating func succeed(_ id: UInt32, into replies: inout ReplyBuffer) -> RequestResult {
    replies.bytes.endFrame(replies.bytes.beginReply(id: id))
    return RequestResult()
  }

  // MARK: Reply streams

  /// Executes the credit and cancel frames for open streams that are among the requests behind a change. So the change
  /// can be canceled, and other streams go on. One for a stream that is not open waits, because a request that opens it
  /// may be in front of it.
  mutating func executeControlFrames(of connection: inout Connection, into replies: inout ReplyBuffer) {
    while connection.isAwaitingChange,
      let (header, offset) = connection.input.nextFrame(maxLength: limits.maxFrameBytes)
    {
      let operation = Operation(rawValue: header.kind)
      guard operation == .credit || operation == .cancel,
        connection.streams.contains(where: { $0.id == header.id })
      else { continue }
      let body = unsafe RawSpan(_unsafeBytes: connection.input.bytes).extracting(header.body(at: offset))
      if operation == .credit {
        _ = addCredit(header, body, &connection)
      } else {
        _ = cancel(header, body, &connection, into: &replies)
      }
      connection.input.invalidateFrame(at: offset)
    }
  }

  /// Adds to the credit of a stream. There is no reply, and a stream that has just ended is no error.
  private func addCredit(_ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection) -> RequestResult {
    guard header.flags == 0, header.detail == 0, body.byteCount == 4, let amount = body.integer(at: 0, as: UInt32.self),
      let index = connection.streams.firstIndex(where: { $0.id == header.id })
    else { return RequestResult() }
    connection.streams[index].addCredit(Int(amount))
    return RequestResult()
  }

  /// Ends a stream. The reply, an error, is the stream's last frame; there is none if the stream has just ended.
  private mutating func cancel(
    _ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection, into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard header.flags == 0, header.detail == 0, body.byteCount == 0,
      let index = connection.streams.firstIndex(where: { $0.id == header.id }), connection.streams[index].tryCancel()
    else { return RequestResult() }
    recordEnd(of: connection.streams[index], .cancelled)
    connection.endStream(at: index)
    return replies.fail(.cancelled, header.id)
  }

  // MARK: Figures

  private mutating func stats(
    _ header: FrameHeader, _ body: RawSpan, _ connection: borrowing Connection, into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard body.byteCount == 0 else { return replies.fail(.malformed, header.id, BodyFlaw.ofEmpty(body)) }
    let figures: [Figure]
    var required: (revision: UInt64, commitWriter: CommitWriter)?
    if let store = connection.stores[header.detail]?.store {
      let isHeld = connection.showsUndurableCommits(replies)
      guard let (mapFigures, revision) = ServerState.mapFigures(of: store, isHeld: isHeld, now: now) else {
        return replies.fail(.storeUnknown, header.id, "store \(store.name) was dropped")
      }
      figures =
        mapFigures + [Figure("incarnation", store.incarnation)]
        + store.fileFigures.map { Figure($0.name, $0.value) }
      required = store.commitWriter.map { (revision, $0) }
    } else {
      figures = server.figures()
    }
    let start = replies.bytes.beginReply(id: header.id)
    for figure in figures { replies.bytes.append(figure) }
    replies.bytes.endFrame(start)
    if let (revision, commitWriter) = required { replies.require(revision, commitWriter) }
    return RequestResult()
  }

  private mutating func slowLog(_ id: UInt32, _ body: RawSpan, into replies: inout ReplyBuffer) -> RequestResult {
    guard body.byteCount == 0 else { return replies.fail(.malformed, id, BodyFlaw.ofEmpty(body)) }
    let now = monotonicMilliseconds()
    let start = replies.bytes.beginReply(id: id)
    for entry in server.slowLog.withLock({ $0.newestFirst }) {
      replies.bytes.append(
        SlowLogRecord(
          ageMilliseconds: now - entry.ended, nanoseconds: entry.nanoseconds, receivedBytes: entry.receivedBytes,
          requests: entry.requests, operations: entry.operations, store: entry.store))
    }
    replies.bytes.endFrame(start)
    return RequestResult()
  }

  private mutating func connections(_ id: UInt32, _ body: RawSpan, into replies: inout ReplyBuffer) -> RequestResult {
    guard body.byteCount == 4, let limit = body.integer(at: 0, as: UInt32.self) else {
      return replies.fail(.malformed, id, BodyFlaw.ofInteger(body, byteCount: 4, fills: true))
    }
    let now = monotonicMilliseconds()
    var commands: [Int32: String] = [:]
    let start = replies.bytes.beginReply(id: id)
    for figures in server.registry.busiest(min(Int(limit), ConnectionRegistry.maxReported)) {
      replies.bytes.append(ConnectionStatistics(figures, now: now, &commands))
    }
    replies.bytes.endFrame(start)
    return RequestResult()
  }

  // MARK: Stores

  private mutating func openStore(
    _ id: UInt32, _ body: RawSpan, _ connection: inout Connection, into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult? {
    let name = try decodeStoreName(body)
    guard permits(.storeOpen, on: name, connection) else {
      return refuse(Self.action(.storeOpen, on: name), id, &connection, into: &replies)
    }
    let store = try server.stores.open(name)
    let right = connection.grants.right(on: name)
    guard let handle = connection.stores.open(store, permitting: right, limit: limits.maxOpenStores) else {
      return replies.fail(
        .tooManyStores, id, "this connection already has \(limits.maxOpenStores) stores open; close one first")
    }
    let start = replies.bytes.beginReply(id: id)
    replies.bytes.append(OpenedStore(handle: handle, engine: store.engine.rawValue))
    replies.bytes.endFrame(start)
    return RequestResult()
  }

  private mutating func createStore(
    _ header: FrameHeader, _ body: RawSpan, _ connection: inout Connection, into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult? {
    guard body.byteCount <= 2 * 255 else {
      return replies.fail(.illegalArgument, header.id, "no engine has such a long name")
    }
    guard let creation = StoreCreation(body) else {
      return replies.fail(.malformed, header.id, "the size of the name exceeds the body")
    }
    let name = try StoreName(creation.name)
    guard permits(.storeCreate, on: name, connection) else {
      return refuse(Self.action(.storeCreate, on: name), header.id, &connection, into: &replies)
    }
    let specification = try StoreSpecification(creation.specification)
    return change(.create(name, specification), header, &connection, store: name.text)
  }

  private mutating func listStores(
    _ id: UInt32, _ body: RawSpan, _ connection: borrowing Connection, into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard body.byteCount == 0 else { return replies.fail(.malformed, id, BodyFlaw.ofEmpty(body)) }
    let isHeld = connection.showsUndurableCommits(replies)
    var required: [(revision: UInt64, commitWriter: CommitWriter)] = []
    var listed = server.stores.damagedNames.filter { connection.grants.right(on: $0) >= .read }.map { name in
      ListedStore(name: name.text, specification: ListedStore.damagedSpecification, entries: 0)
    }
    for store in server.stores.list() where connection.grants.right(on: store.name) >= .read {
      let contents = store.access { map in
        _ = map.expireBriefly(now: now)
        return isHeld ? map.contents : store.visibleContents(of: map)
      }
      listed.append(
        ListedStore(name: store.name.text, specification: "\(store.specification)", entries: UInt64(contents.entries)))
      if let commitWriter = store.commitWriter { required.append((contents.revision, commitWriter)) }
    }
    let start = replies.bytes.beginReply(id: id)
    for store in listed.sorted(by: { $0.name < $1.name }) { replies.bytes.append(store) }
    replies.bytes.endFrame(start)
    for (revision, commitWriter) in required { replies.require(revision, commitWriter) }
    return RequestResult()
  }

  /// Decodes the store name that is the whole body. A name that is too long is rejected before it is made text.
  private func decodeStoreName(_ body: RawSpan) throws(StorageError) -> StoreName {
    guard body.byteCount <= StoreName.maxLength else { throw .invalidStoreName("\(body.byteCount) bytes") }
    return try StoreName(body.toString())
  }

  // MARK: Access control

  /// Whether a connection has the right to an operation on a store.
  private func permits(_ operation: Operation, on store: StoreName, _ connection: borrowing Connection) -> Bool {
    connection.grants.right(on: store) >= operation.descriptor.right
  }

  /// What an operation on a store does, as it reads after "may not".
  static func action(_ operation: Operation, on store: StoreName) -> String {
    let verb =
      switch operation {
      case .storeCreate: "create"
      case .storeDrop: "drop"
      case .indexEnsure, .indexDelete: "change the indexes of"
      default: operation.descriptor.right == .read ? "read" : "write to"
      }
    return "\(verb) store \(store)"
  }
}
