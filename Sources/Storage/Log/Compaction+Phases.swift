import Platform

/// A compaction's way from the journal's thread to the runner's and back.
extension Compaction {
  /// How fast the space of sources is given back: pieces that few commits wait for, far faster than it can be taken.
  private static let freedBytesPerSecond = 512 << 20

  enum Phase {
    /// The runner takes over what is live.
    case copying
    /// All is written. What made the rest dead must be on the disk before the journal has it go on.
    case copied
    /// The runner puts the file in its sources' place.
    case replacing
    /// It is there, and has so many bytes.
    case replaced(byteCount: Int)
    case failed(CompactionError)
  }

  /// Begins to copy. The store's journal is woken when it is done.
  func copy(from store: Store, on runner: any CompactionRunner, bytesPerSecond: Int) {
    enter(.copying)
    runner.run(bytesPerSecond: bytesPerSecond) { [self] in
      let before = end
      do throws(CompactionError) {
        if try step(store) { return end - before }
        leave(.copied, store)
      } catch {
        leave(.failed(error), store)
      }
      return nil
    }
  }

  /// Begins to replace the sources.
  func replace(_ store: Store, on runner: any CompactionRunner) {
    enter(.replacing)
    runner.run(bytesPerSecond: .max) { [self] in
      do throws(CompactionError) { leave(.replaced(byteCount: try finish()), store) } catch {
        leave(.failed(error), store)
      }
      return nil
    }
    runner.run(bytesPerSecond: Self.freedBytesPerSecond) { [self] in
      // Nothing waits for this. Unless the sources are replaced for good, all of them is needed.
      if case .replaced = phase { freePiece() } else { nil }
    }
  }

  private func leave(_ phase: Phase, _ store: Store) {
    enter(phase)
    store.commitWriter?.wake()
  }
}
