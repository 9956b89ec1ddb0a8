import Wire

/// A decoded request on documents. Its texts are ranges of its body.
enum DocumentRequest: Sendable {
  case find(FindRequest)
  case aggregate(AggregateRequest)
  case change(ChangeMatchingRequest)
  /// An apply request with updates, whose body is valid.
  case apply

  /// Decodes the body of a request, or returns nil if it is malformed.
  init?(_ operation: Operation, _ body: RawSpan) {
    switch operation {
    case .find:
      guard let request = FindRequest(body) else { return nil }
      self = .find(request)
    case .aggregate:
      guard let request = AggregateRequest(body) else { return nil }
      self = .aggregate(request)
    case .changeMatching:
      guard let request = ChangeMatchingRequest(body) else { return nil }
      self = .change(request)
    default: return nil
    }
  }

  var operation: Operation {
    switch self {
    case .find: .find
    case .aggregate: .aggregate
    case .change: .changeMatching
    case .apply: .apply
    }
  }

  /// The name of the index to use, in the body; nil to choose.
  var hint: Range<Int>? {
    guard case .find(let request) = self, !request.index.isEmpty else { return nil }
    return request.index
  }

  var changesEntries: Bool {
    switch self {
    case .find, .aggregate: false
    case .change(let request): !request.isDryRun
    case .apply: true
    }
  }

  var isExplained: Bool {
    switch self {
    case .find(let request): request.isExplained
    case .aggregate(let request): request.isExplained
    case .change, .apply: false
    }
  }

  /// How long it wants to take at most, in milliseconds; nil for the default.
  var time: UInt32? {
    switch self {
    case .find(let request): request.time
    case .aggregate(let request): request.time
    case .change(let request): request.time
    case .apply: nil
    }
  }

  /// What it asks for, for messages.
  var noun: String {
    switch self {
    case .find: "find"
    case .aggregate: "aggregation"
    case .change(let request): request.isDelete ? "deletion" : "update"
    case .apply: "apply"
    }
  }

  /// Reads the texts of the request.
  func makeTask(_ body: [UInt8], _ limits: ServerLimits) throws(CommandFailure) -> any DocumentTask {
    switch self {
    case .find(let request): try FindTask(request, body)
    case .aggregate(let request): try AggregateTask(request, body, limits)
    case .change(let request): try ChangeTask(request, body, limits)
    case .apply: ApplyTask(body, limits)
    }
  }
}
