import Documents
import Storage
import Wire

/// Reports of the server, of a store, and of the client itself.
extension HTTPCodec {
  static func append(
    _ json: JSONValue, _ request: HTTPRequest, into replies: inout ReplyBuffer
  ) -> RequestEnd {
    replies.bytes.appendResponse(json: json.encoded(), isHead: request.method == .head)
    return .done
  }

  static func appendFigures(
    of store: Store, _ request: HTTPRequest, _ connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) throws(CommandFailure) -> RequestEnd {
    guard let statement = executor.figures(of: store, isHeld: connection.showsUndurableCommits(replies)) else {
      throw .removed(store)
    }
    let start = replies.count
    let end = append(
      .object([
        "name": .string(store.name.text), "engine": .string("\(store.specification)"),
        "figures": statement.contents.json,
      ]), request, into: &replies)
    if let commitWriter = statement.commitWriter {
      replies.require(statement.revision, commitWriter, of: request.tag, from: start, reveals: true)
    }
    return end
  }

  static func appendReport(
    _ request: HTTPRequest, _ bytes: RawSpan, _ connection: inout Connection, on executor: inout Executor,
    into replies: inout ReplyBuffer
  ) -> RequestEnd {
    switch request.route.resource {
    case .stores:
      let start = replies.count
      let list = executor.stores(readableBy: connection.grants, isHeld: connection.showsUndurableCommits(replies))
      let end = append(.object(["stores": .array(list.stores.map(\.json))]), request, into: &replies)
      for (revision, commitWriter) in list.revealed {
        replies.require(revision, commitWriter, of: request.tag, from: start, reveals: true)
      }
      return end
    case .metrics:
      executor.server.appendPage(request, into: &replies.bytes)
      return .done
    case .cluster:
      let report = executor.server.cluster.withLock { $0.report }
      replies.bytes.appendResponse(
        json: Array("{\"databases\":".utf8) + report + "}".utf8, isHead: request.method == .head)
      return .done
    case .stats: return append(.object(["figures": executor.server.figures().json]), request, into: &replies)
    case .slowLog: return append(.object(["wakeups": .array(executor.slowLog().map(\.json))]), request, into: &replies)
    case .connections:
      let connections = executor.busiestConnections(100).map(\.json)
      return append(.object(["connections": .array(connections)]), request, into: &replies)
    case .session:
      if connection.consoleSession != nil { request.bearer(bytes).map(executor.server.accessControl.endConsoleSession) }
      replies.bytes.beginResponse(.noContent)
      replies.bytes.endHead()
      return .done
    default:
      return append(executor.server.accessControl.describeRights(of: connection), request, into: &replies)
    }
  }
}

extension [Figure] {
  /// The figures by their names. Those that can exceed what JavaScript can count are strings.
  fileprivate var json: JSONValue {
    var object = JSONObject()
    for figure in self {
      let isLarge = figure.name.hasSuffix("revision") || figure.name == "incarnation"
      object[figure.name] = isLarge ? .string("\(figure.value)") : .integer(Int64(clamping: figure.value))
    }
    return .object(object)
  }
}

extension ListedStore {
  fileprivate var json: JSONValue {
    .object([
      "name": .string(name), "engine": .string(specification), "entries": .integer(Int64(clamping: entries)),
    ])
  }
}

extension SlowLogRecord {
  fileprivate var json: JSONValue {
    .object([
      "ageMilliseconds": .integer(Int64(clamping: ageMilliseconds)),
      "nanoseconds": .integer(Int64(clamping: nanoseconds)),
      "receivedBytes": .integer(Int64(clamping: receivedBytes)), "requests": .integer(Int64(requests)),
      "operations": .array(operationNames.map { .string($0) }), "store": .string(store),
    ])
  }
}

extension ConnectionStatistics {
  fileprivate var json: JSONValue {
    .object([
      "number": .integer(Int64(clamping: number)), "openMilliseconds": .integer(Int64(clamping: openMilliseconds)),
      "requests": .integer(Int64(clamping: requests)),
      "requestsPerSecond": .integer(Int64(clamping: requestsPerSecond)),
      "receivedBytes": .integer(Int64(clamping: receivedBytes)), "sentBytes": .integer(Int64(clamping: sentBytes)),
      "waitingBytes": .integer(Int64(clamping: waitingBytes)), "process": .integer(Int64(process)),
      "address": .string(address),
    ])
  }
}
