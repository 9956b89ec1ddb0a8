import Larder

/// How a change is written as one line of JSON: an entry that was put as `EntryLine` has it, a deletion as
/// `{"key":"apple","deleted":true,"revision":8}`, and that of all entries as `{"deletedAll":true,"revision":9}`.
enum ChangeLine {
  static func append(_ change: Change, revision: UInt64, keysOnly: Bool, to output: inout [UInt8]) {
    switch change {
    case .put(let entry): return EntryLine.append(entry, keysOnly: keysOnly, to: &output)
    case .delete(let key):
      output.append("{\"key\":")
      output.append(jsonString: key)
      output.append(",\"deleted\":true")
    case .deleteAll: output.append("{\"deletedAll\":true")
    }
    output.append(",\"revision\":")
    output.append(number: revision)
    output.append("}\n")
  }
}
