import Documents
import Larder
import Platform

/// The names of fields that completion offers, from a small sample of a store's documents. They are kept for a while,
/// so that not every Tab asks the server.
final class FieldNames: Sendable {
  private struct Sample {
    let paths: [FieldPath]
    let time: ContinuousClock.Instant
  }

  /// The number of entries to look at, half of them from each end of the store.
  private static let maxEntryCount = 100
  /// The size of the values to look at, in bytes, at each end of the store.
  private static let maxByteCount = 1 << 20
  private static let maxPathCount = 500
  /// The maximum number of names in a path.
  private static let maxDepth = 4
  private static let lifetime = Duration.seconds(30)

  private let samples = Lock<[String: Sample]>([:])

  /// Returns the paths of fields that some documents of the store have.
  /// - Parameter timeout: How long to wait for the server.
  func paths(in store: RemoteStore, named name: String, timeout: Duration) async -> [FieldPath] {
    let now = ContinuousClock.now
    if let sample = samples.withLock({ $0[name] }), sample.time + Self.lifetime > now { return sample.paths }
    var found = Set<FieldPath>()
    for reverse in [false, true] {
      await Self.collect(from: store, reverse: reverse, until: now + timeout, in: &found)
    }
    let paths = Array(found)
    // An empty sample may only mean that the server was slow.
    if !paths.isEmpty { samples.withLock { $0[name] = Sample(paths: paths, time: now) } }
    return paths
  }

  private static func collect(
    from store: RemoteStore, reverse: Bool, until end: ContinuousClock.Instant, in paths: inout Set<FieldPath>
  ) async {
    var (entryCount, byteCount) = (0, 0)
    var entries = store.all(reverse: reverse).makeAsyncIterator()
    while entryCount < maxEntryCount / 2, byteCount < maxByteCount, paths.count < maxPathCount, .now < end,
      let entry = try? await entries.next()
    {
      entryCount += 1
      guard let bytes = entry.bytes else { continue }
      byteCount += bytes.count
      if bytes.count <= maxByteCount, let value = try? JSONValue(parsing: bytes.span) {
        collect(from: value, under: [], in: &paths)
      }
    }
  }

  private static func collect(from value: JSONValue, under names: [String], in paths: inout Set<FieldPath>) {
    guard names.count < maxDepth else { return }
    for (name, value) in value.object ?? [:] where !name.isEmpty && paths.count < maxPathCount {
      paths.insert(FieldPath(names: names + [name]))
      // A path leads into each object in an array.
      for element in value.array ?? [value] { collect(from: element, under: names + [name], in: &paths) }
    }
  }
}
