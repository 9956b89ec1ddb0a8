import Storage
import Wire

/// Output of one connection that waits at gates, in the order in which it was made.
struct GatedOutput: ~Copyable {
  private var bytes = ByteBuffer()
  /// Each gate with the bytes that wait for it, and for those before it.
  private var waits: [(gate: Gate, byteCount: Int)] = []

  var count: Int { bytes.count }
  var isEmpty: Bool { waits.isEmpty }
  /// The gate that everything waits for.
  var first: Gate? { waits.first?.gate }

  /// Adds output behind all that waits. Without a gate of its own it waits with what is before it.
  mutating func append(_ output: RawSpan, gates: [Gate]) {
    bytes.append(output)
    for gate in gates { waits.append((gate, 0)) }
    waits[waits.count - 1].byteCount += output.byteCount
  }

  /// Moves what need not wait any more to `output`.
  /// - Returns: the ids of answers that became errors.
  mutating func release(into output: inout ByteBuffer) -> [UInt32] {
    var failed: [UInt32] = []
    var passed = 0
    while passed < waits.count, waits[passed].gate.isOpen {
      let (gate, byteCount) = waits[passed]
      bytes.withSpan { bytes in
        let bytes = bytes.extracting(0..<byteCount)
        if let failure = gate.failure {
          Self.fail(bytes, failure, into: &output, &failed)
        } else {
          output.append(bytes)
        }
      }
      bytes.consume(byteCount)
      passed += 1
    }
    waits.removeFirst(passed)
    if waits.isEmpty { bytes.releaseStorage() }
    return failed
  }

  /// Puts an error in the place of each answer: whether its request was done can't be known.
  private static func fail(
    _ frames: RawSpan, _ failure: StorageError, into output: inout ByteBuffer, _ failed: inout [UInt32]
  ) {
    var place = 0
    while case .frame(let header) = FrameScan(frames, at: place, largest: .max) {
      if header.id == 0 || !tellsOfEntries(header) {
        output.append(frames.extracting(place..<place + header.frameSize))
      } else if !failed.contains(header.id) {
        output.appendError(.failed, id: header.id, message: "\(failure)")
        failed.append(header.id)
      }
      place += header.frameSize
    }
  }

  /// An absence, too, may be what a crash takes back.
  private static func tellsOfEntries(_ header: FrameHeader) -> Bool {
    header.kind == Outcome.done.rawValue
      || [ErrorCode.notFound, .conditionFailed].contains { $0.rawValue == header.detail }
  }
}
