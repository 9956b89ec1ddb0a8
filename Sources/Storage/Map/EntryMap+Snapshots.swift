extension EntryMap {
  /// How many snapshots live, those of the same state counted once.
  package var snapshotCount: Int { snapshots.count }

  /// An unchanging view of the map as it is. O(1), but for the expired entries, which are removed first.
  ///
  /// Every snapshot must be ended: until then, what it sees stays in memory.
  package mutating func snapshot(now: UInt64) -> Snapshot {
    expire(now: now)
    if let last = snapshots.last, last.changeCount == changeCount {
      snapshots[snapshots.count - 1].userCount += 1
      return Snapshot(epoch: last.epoch, count: last.count, revision: last.revision)
    }
    lastSnapshotEpoch += 1
    order.beginEpoch(after: lastSnapshotEpoch)
    snapshots.append(
      LiveSnapshot(
        epoch: lastSnapshotEpoch, root: order.root, count: order.count, revision: revision, changeCount: changeCount))
    sharedRevision = revision
    return Snapshot(epoch: lastSnapshotEpoch, count: order.count, revision: revision)
  }

  /// Ends a snapshot, and frees what only it could see. Does nothing for one that has ended with its store.
  package mutating func end(_ snapshot: Snapshot) {
    guard let index = index(of: snapshot) else { return }
    snapshots[index].userCount -= 1
    guard snapshots[index].userCount == 0 else { return }
    let ended = snapshots.remove(at: index)
    // Set first: what is freed below must count as seen by nobody.
    order.sharedEpoch = snapshots.last?.epoch ?? 0
    sharedRevision = snapshots.last?.revision ?? 0
    let heir = index - 1
    for node in ended.nodes {
      if heir >= 0, order.pool.node(node).epoch <= snapshots[heir].epoch {
        snapshots[heir].nodes.append(node)
      } else {
        heldBytes -= OrderNode.byteCount
        order.pool.free(node)
      }
    }
    for handle in ended.records {
      if heir >= 0, record(handle).revision <= snapshots[heir].revision {
        snapshots[heir].records.append(handle)
      } else {
        heldBytes -= record(handle).memoryBytes
        free(handle)
      }
    }
  }

  /// Throws `snapshotEnded`, or `storeDropped`, unless the snapshot lives.
  package func check(_ snapshot: Snapshot) throws(StorageError) { _ = try view(of: snapshot) }

  /// What the map knows of a snapshot that lives. O(log snapshots).
  func view(of snapshot: Snapshot) throws(StorageError) -> (root: UInt32, count: Int) {
    guard let index = index(of: snapshot) else { throw isDropped ? .storeDropped : .snapshotEnded }
    return (snapshots[index].root, snapshots[index].count)
  }

  /// Epochs ascend.
  private func index(of snapshot: Snapshot) -> Int? {
    var (low, high) = (0, snapshots.count)
    while low < high {
      let middle = (low + high) / 2
      if snapshots[middle].epoch < snapshot.epoch { low = middle + 1 } else { high = middle }
    }
    return low < snapshots.count && snapshots[low].epoch == snapshot.epoch ? low : nil
  }
}
