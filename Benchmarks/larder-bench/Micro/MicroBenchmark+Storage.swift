import Storage
import Wire

extension MicroBenchmark {
  /// Operations of the memory engine under a single acquisition of the store's lock, as a worker does for a batch.
  static var storage: [MicroBenchmark] {
    [
      MicroBenchmark(name: "memory engine: get") { settings in
        let (store, keys) = (try populatedStore(settings), KeySample(settings))
        return { count in
          store.access { map in
            for index in 0..<count {
              keep(keys.with(index) { map.get($0, now: 0)?.revision })
            }
          }
        }
      },
      MicroBenchmark(name: "memory engine: put over an entry") { settings in
        let (store, keys) = (try populatedStore(settings), KeySample(settings))
        let value = BenchValue.bytes(size: settings.valueSize)
        return { count in
          store.access { map in
            for index in 0..<count {
              let revision = map.revisions.last + 1
              keys.with(index) { unsafe put($0, value.span.bytes, revision, into: &map) }
            }
          }
        }
      },
      MicroBenchmark(name: "memory engine: put of a new entry") { settings in
        let value = BenchValue.bytes(size: settings.valueSize)
        return { count in
          guard let store = try? emptyStore() else { return }
          var key = ByteBuffer()
          key.append(BenchKey.bytes(0))
          var random = Random(seed: settings.seed)
          store.access { map in
            for _ in 0..<count {
              BenchKey.patch(&key, at: BenchKey.digitsOffset, random.below(BenchKey.limit))
              let revision = map.revisions.last + 1
              key.withSpan { unsafe put($0, value.span.bytes, revision, into: &map) }
            }
          }
        }
      },
      page("memory engine: page of 20 at the beginning", at: 0),
      page("memory engine: page of 20 at nine tenths", at: 0.9),
    ]
  }

  private static func page(_ name: String, at fraction: Double) -> MicroBenchmark {
    MicroBenchmark(name: name) { settings in
      let store = try populatedStore(settings)
      let offset = Int(Double(settings.entries) * fraction)
      return { count in
        store.access { map in
          var bytes = 0
          for _ in 0..<count {
            let none = [UInt8]()
            let ranks = unsafe map.ranks(prefix: none.span.bytes, after: nil, reverse: false, now: 0)
            let start = ranks.lowerBound + offset
            let page = start..<min(ranks.upperBound, start + Int(Workload.pageLimit))
            _ = try? map.scan(ranks: page, reverse: false, now: 0) { entry in
              unsafe bytes += entry.key.count + entry.valueByteCount
              return true
            }
          }
          keep(bytes)
        }
      }
    }
  }

  @inline(__always)
  private static func put(_ key: RawSpan, _ value: RawSpan, _ revision: UInt64, into map: inout EntryMap) {
    do { try map.put(key, value, revision: revision) } catch { preconditionFailure("\(error)") }
  }

  private static func emptyStore() throws -> Store {
    Store(name: try StoreName("micro"), engine: .memory)
  }

  private static func populatedStore(_ settings: MicroSettings) throws -> Store {
    let store = try emptyStore()
    let value = BenchValue.bytes(size: settings.valueSize)
    store.access { map in
      for number in 0..<settings.entries {
        let revision = map.revisions.last + 1
        let key = BenchKey.bytes(UInt64(number))
        unsafe put(key.span.bytes, value.span.bytes, revision, into: &map)
      }
    }
    return store
  }
}

/// Keys drawn in advance, so that drawing them is not measured.
struct KeySample {
  private static let count = 65_536
  private let bytes: [UInt8]

  init(_ settings: MicroSettings) {
    var random = Random(seed: settings.seed)
    var bytes: [UInt8] = []
    for _ in 0..<Self.count { bytes += BenchKey.bytes(random.below(UInt64(settings.entries))) }
    self.bytes = bytes
  }

  @inline(__always)
  func with<R>(_ index: Int, _ body: (RawSpan) -> R) -> R {
    let offset = (index & (Self.count - 1)) * BenchKey.size
    return unsafe body(bytes.span.bytes.extracting(offset..<offset + BenchKey.size))
  }
}
