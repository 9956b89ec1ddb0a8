import Platform

/// A compaction's way from the journal's thread to the runner's and back.
extension Compaction {
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
  func copy(from store: Store, on runner: any CompactionRunner) {
    enter(.copying)
    runner.run { [self] in
      let before = end
      do throws(CompactionError) {
        guard try step(store) else { return leave(.copied, store) }
      } catch {
        return leave(.failed(error), store)
      }
      return end - before
    }
  }

  /// Begins to replace the sources.
  func replace(_ store: Store, on runner: any CompactionRunner) {
    enter(.replacing)
    runner.run { [self] in
      do throws(CompactionError) {
        return leave(.replaced(byteCount: try finish()), store)
      } catch {
        return leave(.failed(error), store)
      }
    }
  }

  private func leave(_ phase: Phase, _ store: Store) -> Int? {
    enter(phase)
    store.journal?.wake()
    return nil
  }
}
