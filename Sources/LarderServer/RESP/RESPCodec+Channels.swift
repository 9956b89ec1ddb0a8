import Wire

/// Subscriptions and messages.
extension RESPCodec {
  /// Adds the subscriptions of SUBSCRIBE or PSUBSCRIBE.
  static func subscribe(
    _ request: RESPRequest, _ bytes: RawSpan, _ kind: RESPSubscription.Kind, of connection: inout Connection,
    _ client: RESPClient, into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let type = kind == .channel ? "subscribe" : "psubscribe"
    var added: [RESPSubscription] = []
    var names = request.words(from: 1, bytes)
    while let name = names.next(bytes) { added.append(try RESPSubscription(kind, to: bytes.extracting(name))) }
    try client.subscribe(added, of: connection.token) { subscription in
      append(type, subscription.name, client.subscriptionCount, client, &replies)
    }
    connection.expectsPushes = true
  }

  /// Removes the subscriptions that UNSUBSCRIBE or PUNSUBSCRIBE names, or all of their kind.
  static func unsubscribe(
    _ request: RESPRequest, _ bytes: RawSpan, _ kind: RESPSubscription.Kind, of connection: inout Connection,
    _ client: RESPClient, into replies: inout ReplyBuffer
  ) {
    var removed: [RESPSubscription] = []
    var names = request.words(from: 1, bytes)
    while let name = names.next(bytes) { removed.append(RESPSubscription(kind, equalTo: bytes.extracting(name))) }
    if removed.isEmpty { removed = client.subscriptions(kind) }
    let type = kind == .channel ? "unsubscribe" : "punsubscribe"
    let counts = removed.map { client.unsubscribe($0) }
    // Messages published before the end of the subscription precede the reply.
    appendPushes(of: &connection, into: &replies)
    for (subscription, count) in zip(removed, counts) { append(type, subscription.name, count, client, &replies) }
    if removed.isEmpty { append(type, nil, client.subscriptionCount, client, &replies) }
    connection.expectsPushes = client.subscriptionCount > 0
  }

  /// Appends the reply to a subscription or its end.
  /// - Parameter count: The number of the client's subscriptions afterward.
  private static func append(
    _ type: String, _ name: [UInt8]?, _ count: Int, _ client: RESPClient, _ replies: inout ReplyBuffer
  ) {
    replies.bytes.appendRESP(pushOf: 3, client.version)
    replies.bytes.appendRESP(bulk: type)
    if let name { replies.bytes.appendRESP(bulk: name) } else { replies.bytes.appendRESPNull(client.version) }
    replies.bytes.appendRESP(count)
  }

  static func publish(
    _ request: RESPRequest, _ bytes: RawSpan, _ client: RESPClient, into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    try RESPSubscription.check(bytes.extracting(request.word(1, bytes)))
    let channel = bytes.extracting(request.word(1, bytes)).toArray()
    let payload = bytes.extracting(request.word(2, bytes)).toArray()
    replies.bytes.appendRESP(client.channels.publish(payload, to: channel))
  }

  static func describeChannels(
    _ request: RESPRequest, _ bytes: RawSpan, _ client: RESPClient, into replies: inout ReplyBuffer
  ) throws(RESPFailure) {
    let subcommand = bytes.extracting(request.word(1, bytes))
    if subcommand.isWord("NUMPAT") { return replies.bytes.appendRESP(client.channels.patternCount) }
    if subcommand.isWord("NUMSUB") {
      replies.bytes.appendRESP(mapOf: request.count - 2, .two)
      var words = request.words(from: 2, bytes)
      while let word = words.next(bytes) {
        let channel = bytes.extracting(word).toArray()
        replies.bytes.appendRESP(bulk: channel)
        replies.bytes.appendRESP(client.channels.subscriberCount(of: channel))
      }
      return
    }
    guard request.count <= 3 else { throw .tooManyArguments(request, bytes) }
    var channels = client.channels.channels
    if request.count == 3 {
      let pattern = try GlobPattern(bytes.extracting(request.word(2, bytes)))
      channels = channels.filter { unsafe $0.withUnsafeBytes(pattern.matches) }
    }
    replies.bytes.appendRESP(arrayOf: channels.count)
    for channel in channels { replies.bytes.appendRESP(bulk: channel) }
  }

  // MARK: Sending

  static func appendPushes(of connection: inout Connection, into replies: inout ReplyBuffer) {
    guard let inbox = connection.respClient.inbox else {
      connection.hasPushes = false
      return
    }
    guard !inbox.hasOverflowed else {
      // An error would wait behind everything that the client doesn't read.
      connection.phase = .closed
      return
    }
    guard connection.outbox.isEmpty else { return }
    connection.hasPushes = false
    for push in inbox.take() ?? [] {
      guard push.store.map(connection.grants.right) ?? connection.grants.onAll >= .read else { continue }
      replies.bytes.append(push.bytes)
    }
  }

  // MARK: What subscribers may send

  /// Whether a client whose replies can't be told from messages may send a command.
  static func isAllowedForSubscribers(_ command: RESPCommand) -> Bool {
    switch command {
    case .ping, .psubscribe, .punsubscribe, .quit, .reset, .subscribe, .unsubscribe: true
    default: false
    }
  }
}
