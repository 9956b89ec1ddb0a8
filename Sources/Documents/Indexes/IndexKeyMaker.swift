/// Makes the keys of documents in several indexes, in one pass over each document.
///
/// A key of a document is one key of each of the index's fields, one after the other, as `IndexLayout` says; a document
/// has all combinations.
///
/// It is used by one thread at a time: under its owner's lock, or by a thread that builds an index.
package final class IndexKeyMaker {
  /// The maximum number of a document's keys in one index, of bytes in one of them, and of bytes in all of them. Beyond
  /// a limit, the document's only key is the overflow key.
  package static let maxKeyCount = 1_000
  package static let maxKeySize = 1_024
  package static let maxTotalKeySize = 1 << 16
  /// The maximum work of deciding whether a document is in an index: about a sixth of a millisecond, because the store
  /// may be locked meanwhile. Beyond it, the document has the overflow key.
  ///
  /// Each index has a budget of its own, so that a document always has the same keys in it, whatever other indexes
  /// there are.
  package static let maxTestUnits = 1 << 14

  /// Not private, because Swift 6.3.1 fails on buffers of private types.
  struct Index: BitwiseCopyable {
    /// Where its fields are.
    let firstField: Int
    let fieldsEnd: Int
    /// The test of its selector; -1 if all documents are in it.
    let test: Int
  }

  private let indexes: Buffer<Index>
  /// The fields of all indexes, one after the other.
  private let fields: Buffer<IndexField>
  private let tests: [SelectorTest]
  private let pathStorage: PathTable.Storage
  private let paths: PathTable
  /// For each of the fields' paths, which are the first ones, the paths of the fields on the way to it.
  private let ancestors: [[Int]]

  private var fieldKeys = FieldKeys()
  private var metadata = EntryMetadata()

  /// - Throws: `SelectorError` if the selector of an index can't be evaluated.
  package init(_ definitions: [DocumentIndex]) throws(SelectorError) {
    var paths = PathTrie()
    var fields = Buffer<IndexField>()
    for definition in definitions {
      for field in IndexLayout(definition).fields {
        fields.append(IndexField(path: paths.add(field.path), isDescending: field.isDescending))
      }
    }
    ancestors = Self.addAncestors(of: definitions, &paths)
    var indexes = Buffer<Index>()
    var tests: [SelectorTest] = []
    var firstField = 0
    for definition in definitions {
      let fieldsEnd = firstField + definition.fields.count
      indexes.append(
        Index(firstField: firstField, fieldsEnd: fieldsEnd, test: definition.selector == nil ? -1 : tests.count))
      if let selector = definition.selector { tests.append(try Program.test(selector.checkedTree(), &paths)) }
      firstField = fieldsEnd
    }
    self.indexes = indexes
    self.fields = fields
    self.tests = tests
    pathStorage = PathTable.storage(of: paths)
    self.paths = pathStorage.table
  }

  /// Adds the paths of the fields on the way to each of some fields, whose paths have been added.
  private static func addAncestors(of definitions: [DocumentIndex], _ paths: inout PathTrie) -> [[Int]] {
    var ancestors = [[Int]](repeating: [], count: paths.count)
    for field in definitions.flatMap(\.fields) {
      let names = field.path.names
      ancestors[paths.add(field.path)] = (1..<names.count).map { paths.add(FieldPath(names: Array(names.prefix($0)))) }
    }
    return ancestors
  }

  /// Makes the keys in all indexes, in place of those made before. There are none in an index whose selector doesn't
  /// match, and none if the text isn't a JSON object.
  /// - Parameters:
  ///   - text: The value of an entry, which need not be JSON.
  ///   - key: The key of the entry, in UTF-8, which indexes see as `_id`.
  ///   - revision: The revision of the entry, which indexes see as `_rev`.
  /// - Complexity: O(*n*) in the size of the text. It allocates nothing after similar documents, unless fields are in
  ///   arrays of objects, or have several keys, are objects, or have escapes.
  package func makeKeys(of text: Span<UInt8>, key: Span<UInt8>, revision: UInt64, into keys: inout IndexKeys) {
    keys.removeAll()
    metadata.set(key: key, ifNeeded: paths.idEdge >= 0, revision: paths.revisionEdge >= 0 ? revision : nil)
    var budget = WorkBudget()
    let isDocument = metadata.withSource(of: text) { source in
      guard source.isObject else { return false }
      return FieldValues.with(of: source, paths, &budget) { values, _ in
        appendKeys(of: values, with: &fieldKeys, to: &keys)
        return true
      } ?? false
    }
    if !isDocument { for _ in 0..<indexes.count { keys.appendNoKeys() } }
  }

  @inline(__always)
  private func appendKeys(
    of values: borrowing FieldValues, with fieldKeys: inout FieldKeys, to keys: inout IndexKeys
  ) {
    fieldKeys.make(of: values, ancestors)
    for number in 0..<indexes.count {
      let index = indexes[number]
      if index.test >= 0 {
        var budget = WorkBudget(units: Self.maxTestUnits)
        let isIndexed = tests[index.test].holds(nil, values, &budget)
        guard isIndexed, !budget.isExhausted else {
          if budget.isExhausted { keys.appendOverflowKey() } else { keys.appendNoKeys() }
          continue
        }
      }
      fields.withElements { fields in
        keys.appendKeys(fields.extracting(index.firstField..<index.fieldsEnd), fieldKeys)
      }
    }
  }
}

/// A field of an index, by the number of its path.
struct IndexField: BitwiseCopyable {
  let path: Int
  let isDescending: Bool
}
