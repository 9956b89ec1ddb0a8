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
    guard let index = snapshots.firstIndex(where: { $0.epoch == snapshot.epoch }) else { return }
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
        order.pool.free(node)
      }
    }
    for handle in ended.records {
      if heir >= 0, record(handle).revision <= snapshots[heir].revision {
        snapshots[heir].records.append(handle)
      } else {
        free(handle)
      }
    }
  }

  /// What the map knows of a snapshot that lives.
  func view(of snapshot: Snapshot) throws(StorageError) -> (root: UInt32, count: Int) {
    for live in snapshots where live.epoch == snapshot.epoch { return (live.root, live.count) }
    throw isDropped ? .storeDropped : .snapshotEnded
  }
}
