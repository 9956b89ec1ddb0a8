import Wire

extension Service {
  /// Goes by the rules as they are now, also where they take from a client what it has open.
  mutating func takeNewAccess(_ connection: inout Connection) {
    guard connection.phase == .open || connection.phase == .inputEnded else { return }
    connection.grants = server.grants(connection)
    connection.stores.permit(connection.grants)
    if connection.grants.isNothing {
      batch.endConnection(&connection, .notPermitted, server.refuse(Batch.use, connection))
      return settle(&connection)
    }
    var hasEnded = false
    for index in connection.answers.indices.reversed() {
      let (id, store) = (connection.answers[index].id, connection.answers[index].store.name)
      guard !batch.permits(.get, on: store, id, connection, server) else { continue }
      connection.answers.remove(at: index).end()
      hasEnded = true
    }
    if hasEnded { settle(&connection) }
  }
}
