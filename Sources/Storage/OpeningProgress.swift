/// How far the opening of a server's stores has come.
package struct OpeningProgress: Equatable, Sendable {
  package let store: StoreName
  /// Which of the stores it is, from 1.
  package let number: Int
  package let storeCount: Int
  /// How much of the store's files is read, in hundredths.
  package let percent: Int

  package init(store: StoreName, number: Int, storeCount: Int, percent: Int) {
    self.store = store
    self.number = number
    self.storeCount = storeCount
    self.percent = percent
  }
}
