/// Numbers for the paths that matter to a plan: `_id`, and the fields of indexes and of their selectors.
struct PathNumbers: Sendable {
  static let idPath = FieldPath(names: [Document.idName])
  /// The number of `_id`.
  static let id = 0

  private var paths = [idPath]
  /// The numbers of many paths; empty for few, which are compared.
  private var numbers: [FieldPath: Int] = [:]
  private static let maxComparedCount = 16

  /// Whether some index has a selector.
  var hasSelectors = false

  /// Returns the number of a path, which gets one unless it has one.
  mutating func add(_ path: FieldPath) -> Int {
    if let number = self[path] { return number }
    paths.append(path)
    let number = paths.count - 1
    if number == Self.maxComparedCount {
      for (number, path) in paths.enumerated() { numbers[path] = number }
    } else if number > Self.maxComparedCount {
      numbers[path] = number
    }
    return number
  }

  subscript(path: FieldPath) -> Int? {
    paths.count > Self.maxComparedCount ? numbers[path] : paths.firstIndex(of: path)
  }
}

/// The paths that a query limits or sorts by. An index whose first field is none of them is of no use.
struct QueryPaths {
  private var paths = [PathNumbers.idPath]
  /// Whether there are too many paths to compare.
  private var isFull = false
  private static let maxCount = 64

  init(_ tree: SelectorTree, _ sort: [SortField]) {
    // Any index may count all documents.
    if tree.isEverything { isFull = true }
    for field in sort { add(field.path) }
    add(tree, under: nil)
  }

  func contains(_ path: FieldPath) -> Bool { isFull || paths.contains(path) }

  private mutating func add(_ path: FieldPath) {
    if paths.count == Self.maxCount { isFull = true } else { paths.append(path) }
  }

  private mutating func add(_ tree: SelectorTree, under parent: FieldPath?) {
    guard !isFull else { return }
    switch tree {
    case .and(let parts), .or(let parts): for part in parts { add(part, under: parent) }
    case .not(let part): add(part, under: parent)
    case .field(let path, let condition):
      let whole = path.map { parent + $0 } ?? parent
      guard let whole else { return }
      add(whole)
      switch condition {
      case .elemMatch(let inner), .allMatch(let inner): add(inner, under: whole)
      default: break
      }
    case .someElementNot, .expression, .text: break
    }
  }
}
