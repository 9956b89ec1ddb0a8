import Wire

/// Where a request goes: a resource, and the parameters of its query. Ranges are those of the request's bytes, whose
/// percent encoding is still in them.
struct HTTPRoute {
  enum Resource: UInt8 {
    case unknown
    /// The server's parts.
    case stores, stats, slowLog, connections, cluster, whoami, session
    case health, readiness, metrics
    /// One of the console's files, if there is one at this path.
    case asset
    /// A store, and its parts.
    case store, entries, entry, apply, deletion, count, tree, changes, find, explain, aggregate, update, indexes, index
  }

  let resource: Resource
  /// The name of the store; empty for none.
  let store: Range<Int>
  /// What follows the resource: a key, the name of an index, or the path of an asset; empty for nothing. The key of an entry
  /// is in the query then, for clients that can't send each key in a path: in that of a URL, `..` isn't a name.
  let rest: Range<Int>
  /// What follows the question mark; empty for nothing.
  let query: Range<Int>
  /// Whether there is a question mark.
  let hasQuery: Bool

  /// - Parameter target: The path, which begins with a slash unless it is empty, and the query.
  init(_ target: Range<Int>, of head: RawSpan) {
    let mark = target.first { head.byte($0) == UInt8(ascii: "?") }
    let path = target.lowerBound..<(mark ?? target.upperBound)
    query = mark.map { $0 + 1..<target.upperBound } ?? 0..<0
    hasQuery = mark != nil
    var position = path.lowerBound
    func next() -> Range<Int> {
      guard position < path.upperBound else { return 0..<0 }
      let start = position + 1
      let end = (start..<path.upperBound).first { head.byte($0) == UInt8(ascii: "/") } ?? path.upperBound
      position = end
      return start..<end
    }
    let first = head.extracting(next())
    guard first.isText("v1"), position < path.upperBound else {
      resource = position == path.upperBound ? Self.page(first) : .asset
      (store, rest) = (0..<0, path.dropFirst())
      return
    }
    let second = head.extracting(next())
    guard second.isText("stores"), position < path.upperBound else {
      (resource, store, rest) = (position == path.upperBound ? Self.server(second) : .unknown, 0..<0, 0..<0)
      return
    }
    store = next()
    guard position < path.upperBound else {
      (resource, rest) = (.store, 0..<0)
      return
    }
    let part = head.extracting(next())
    guard position < path.upperBound else {
      (resource, rest) = (Self.store(part), 0..<0)
      return
    }
    rest = position + 1..<path.upperBound
    resource = part.isText("entries") ? .entry : part.isText("indexes") ? .index : .unknown
  }

  private static func page(_ name: RawSpan) -> Resource {
    if name.isText("healthz") { return .health }
    if name.isText("readyz") { return .readiness }
    return name.isText("metrics") ? .metrics : .asset
  }

  private static func server(_ name: RawSpan) -> Resource {
    if name.isText("stores") { return .stores }
    if name.isText("stats") { return .stats }
    if name.isText("slow-log") { return .slowLog }
    if name.isText("connections") { return .connections }
    if name.isText("cluster") { return .cluster }
    if name.isText("session") { return .session }
    return name.isText("whoami") ? .whoami : .unknown
  }

  private static func store(_ name: RawSpan) -> Resource {
    if name.isText("entries") { return .entries }
    if name.isText("entry") { return .entry }
    if name.isText("apply") { return .apply }
    if name.isText("delete") { return .deletion }
    if name.isText("count") { return .count }
    if name.isText("tree") { return .tree }
    if name.isText("changes") { return .changes }
    if name.isText("find") { return .find }
    if name.isText("explain") { return .explain }
    if name.isText("aggregate") { return .aggregate }
    if name.isText("update") { return .update }
    return name.isText("indexes") ? .indexes : .unknown
  }

  /// The methods of the resource, as the field `Allow` names them.
  var allowed: String {
    switch resource {
    case .unknown: ""
    case .stores, .stats, .slowLog, .connections, .cluster, .whoami, .health, .readiness, .metrics, .asset, .count,
      .tree:
      "GET, HEAD"
    // The size of a list isn't known before it is sent.
    case .entries, .changes: "GET"
    case .store, .entry: "GET, HEAD, PUT, DELETE"
    case .apply, .deletion, .find, .explain, .aggregate, .update: "POST"
    case .indexes: "GET, HEAD, POST, DELETE"
    case .index: "DELETE"
    case .session: "POST, DELETE"
    }
  }

  /// Whether it is one of those that programs ask for which watch the server.
  var isPage: Bool { resource == .health || resource == .readiness || resource == .metrics }

  /// Whether requests are executed under the lock of the store.
  var isOnEntries: Bool {
    switch resource {
    case .entry, .entries, .apply, .deletion, .count, .tree, .changes: true
    default: false
    }
  }

  /// Whether requests have any number of operations on entries.
  var isBatch: Bool { resource == .apply || resource == .deletion }

  /// Whether a request may have parameters. In the path of an entry, a question mark is taken for a part of the key that
  /// wasn't encoded.
  func takesParameters(_ method: HTTPMethod) -> Bool {
    switch resource {
    case .entries, .count, .tree, .changes: true
    case .entry: rest.isEmpty
    case .indexes: method == .delete
    default: false
    }
  }

  /// Whether the resource has a method.
  func has(_ method: HTTPMethod) -> Bool {
    switch (resource, method) {
    case (.asset, .get), (.asset, .head), (.session, .post), (.session, .delete): true
    default: operation(method) != nil
    }
  }

  /// The operation of Larder's own protocol that a request is, and whose right it needs; nil if there is none.
  func operation(_ method: HTTPMethod) -> Operation? {
    switch (resource, method) {
    case (.stores, .get), (.stores, .head): .storeList
    case (.stats, .get), (.stats, .head), (.store, .get), (.store, .head): .stats
    case (.slowLog, .get), (.slowLog, .head): .slowLog
    case (.connections, .get), (.connections, .head): .connections
    case (.cluster, .get), (.cluster, .head): .cluster
    case (.whoami, .get), (.whoami, .head): .whoami
    case (.health, .get), (.health, .head), (.readiness, .get), (.readiness, .head): .ping
    case (.metrics, .get), (.metrics, .head): .stats
    case (.store, .put): .storeCreate
    case (.store, .delete): .storeDrop
    case (.entries, .get), (.tree, .get), (.tree, .head): .page
    case (.count, .get), (.count, .head): .count
    case (.changes, .get): .watch
    case (.entry, .get), (.entry, .head): .get
    case (.entry, .put): .put
    case (.entry, .delete): .delete
    case (.apply, .post): .apply
    case (.deletion, .post): .deleteMany
    case (.find, .post), (.explain, .post): .find
    case (.aggregate, .post): .aggregate
    case (.update, .post): .changeMatching
    case (.indexes, .get), (.indexes, .head): .indexList
    case (.indexes, .post): .indexEnsure
    case (.index, .delete), (.indexes, .delete): .indexDelete
    default: nil
    }
  }
}
