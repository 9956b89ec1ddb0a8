import Larder

/// One run of `load`: from lines to batches.
enum Loading {
  /// On the main thread, which may wait for input while other threads send.
  @MainActor
  static func run(_ store: RemoteStore, from input: consuming InputFile, keyField: String?) async throws {
    var progress = Progress(total: input.size)
    var lines = LineReader(input)
    var reader = WriteReader(keyField: keyField)
    var sender = BatchSender(store, of: .lines)
    do {
      while true {
        guard let line = lines.next() else {
          // Whoever writes into a pipe slowly sees each line arrive.
          if !lines.isReady { try await sender.sendAll() }
          if try lines.fill() { continue } else { break }
        }
        if isBlank(lines.buffer.span.extracting(line)) { continue }
        let write = try reader.read(lines.buffer.span.extracting(line))
        let lane = BatchSender.lane(of: write.key)
        let size = write.byteCount
        if sender.isFull(lane, for: size) {
          try await sender.send(lane)
          progress.show(sender.loaded, done: lines.bytesRead)
        }
        sender.add(write, of: size, number: lines.number, to: lane)
      }
      try await sender.finish()
    } catch let fault as JSONError {
      progress.clear()
      try await sender.finish()
      throw CommandFailure(
        .usage,
        "line \(lines.number): \(fault); the lines before it are loaded (entries: \(sender.loaded)), correct it and load again"
      )
    } catch is CancellationError {
      progress.clear()
      throw CommandFailure(.unreachable, "it was stopped; at least \(sender.loaded) of the entries are loaded")
    } catch {
      progress.clear()
      throw error
    }
    progress.finish("loaded", sender.loaded, bytes: lines.bytesRead)
  }

  private static func isBlank(_ line: Span<UInt8>) -> Bool {
    for index in 0..<line.count where line[index] != 0x20 && line[index] != 0x09 { return false }
    return true
  }
}
