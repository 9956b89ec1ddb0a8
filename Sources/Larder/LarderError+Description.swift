extension LarderError: CustomStringConvertible {
  /// What happened and what to do.
  public var description: String {
    let text = message.isEmpty ? "the server gave no more reason than its code" : message
    return "\(text) (\(kind), code \(code)); \(advice)"
  }

  private var advice: String {
    switch outcome {
    case .notExecuted: "nothing was changed, and the call can be made again"
    case .rejected: rejectedAdvice
    case .unknown where isRead: "the call only reads and can be made again"
    case .unknown:
      "it may have been carried out or not: read the entry, or make the write conditional, before you write again"
    }
  }

  private var rejectedAdvice: String {
    switch kind {
    case .conditionFailed: "nothing was changed: read the entry and decide anew"
    case .storeUnknown:
      "nothing was changed: check the store's name, or make it, with createStore or a data source's creating:"
    case .changesLost: "read the store, and watch it anew from what was read"
    case .notPermitted:
      "nothing was changed: call as a user who may, or have the server's administrator add a rule to larderd's setting access"
    case .versionNotSupported: "use a client and a server that have a protocol version in common"
    default: "nothing was changed, and the same call would be refused again"
    }
  }
}
