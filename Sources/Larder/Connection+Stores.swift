import Wire

/// A store as calls name it: the client's number for it, and its name for opening it.
struct StoreReference: Sendable {
  let number: UInt16
  let name: String
}

/// What a request has to do with a store.
enum StoreUse: Sendable {
  case none
  /// The request goes to the store, by its handle.
  case uses(UInt16)
  /// The request opens the store.
  case opens(UInt16)

  /// Opening goes ahead of the line, where calls may wait for just that.
  var opens: Bool { if case .opens = self { true } else { false } }

  var number: UInt16? {
    switch self {
    case .none: nil
    case .uses(let number), .opens(let number): number
    }
  }
}

extension Connection {
  /// Opens a store by its name, for this caller and all who wait for it. The handle itself is kept by whoever reads the reply, as it
  /// is good for no other connection than the reply's.
  /// - Returns: what the call that needs the store fails with, or nil.
  func open(_ store: StoreReference, time: CallTime) async -> Reply? {
    let reply = await call(StoreOpenRequest(name: store.name), use: .opens(store.number), store: nil, time: time)
    guard case .failed(let error, _) = reply else { return nil }
    let waiting = state.withLock { state in
      if state.handles[store.number] == .opening { state.handles[store.number] = .closed }
      return state.takeOpeners(of: store.number)
    }
    // What the server refused to one it refuses to all. Whoever gave up lets the next one try.
    let answer: Reply = error.outcome == .rejected ? .failed(error, .final) : .proceed(nil)
    for caller in waiting { caller.resume(answer) }
    return .failed(error, .final)
  }

  /// Deals with replies that opened a store or say that one is gone.
  /// - Returns: who waited for a store.
  func attendStores(_ reading: borrowing Reading, _ state: inout State) -> [Caller] {
    let completions = reading.completions
    reading.input.withSpan { bytes in
      for completion in completions {
        guard let store = completion.store else { continue }
        if completion.header.kind != Wire.Outcome.done.rawValue {
          if completion.header.detail == ErrorCode.storeUnknown.rawValue, completion.form != .opened {
            state.handles.refused(store)
          }
        } else if completion.form == .opened {
          let body = bytes.extracting(completion.header.body(at: completion.offset))
          if let opened = OpenedStore(body) { state.handles[store] = .open(opened.handle) }
        }
      }
    }
    let table = state.table
    state.handles.settle { table.hasRequest(of: $0) }
    var ready: [Caller] = []
    for store in Array(state.openers.keys) {
      switch state.handles[store] {
      case .open, .closed: ready += state.takeOpeners(of: store)
      case .opening, .stale: continue
      }
    }
    return ready
  }
}

extension Connection.State {
  /// Who waits for a store to be opened.
  mutating func takeOpeners(of store: UInt16) -> [Caller] {
    var line = openers.removeValue(forKey: store)
    return line?.popAll() ?? []
  }

  /// Who waits for any store to be opened.
  mutating func takeOpeners() -> [Caller] {
    var callers: [Caller] = []
    for store in Array(openers.keys) { callers += takeOpeners(of: store) }
    return callers
  }
}
