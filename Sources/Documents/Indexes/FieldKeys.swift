/// The keys of each field of one document, in ascending order, before they are combined to the keys of indexes.
///
/// A field's keys are those of the values that its path leads to, and of the elements of those that are arrays, once
/// each; or the key of a missing value if it leads to none. If an element of an array is an array, in such a value or on
/// the way to it, the mark of nested arrays is a key, too: what a selector says about elements can be about the elements
/// of that array, which have no keys.
struct FieldKeys: ~Copyable {
  /// The keys of one field.
  struct Field: BitwiseCopyable {
    /// The number of the first key among those of all fields.
    let firstKey: Int
    var count = 0
    /// The bytes of all keys together, and of the largest one.
    var totalSize = 0
    var maxSize = 0
    /// Whether the field isn't a single value: it has several keys, or its value is an array.
    var isMulti = false
    /// Whether there are more keys, or larger ones, than an index takes. The other properties are undefined then.
    var isOverflow = false
  }

  /// Not private, because Swift 6.3.1 fails on buffers of private types.
  struct Key: BitwiseCopyable {
    let start: Int
    let end: Int
  }

  /// The maximum number of a field's values and elements, which may be equal.
  private static let maxValueCount = 4_096
  /// The maximum size of the text of a value. The keys of larger ones are almost always too large.
  private static let maxTextSize = 1 << 14

  private var fields = Buffer<Field>()
  private var keys = Buffer<Key>()
  /// The keys of all fields, one after the other.
  private var bytes = Buffer<UInt8>()

  init() {}

  /// Makes the keys of the first paths of a table, in place of those made before.
  /// - Parameter ancestors: For each path, the paths of the fields on the way to it.
  @inline(__always)
  mutating func make(of values: borrowing FieldValues, _ ancestors: [[Int]]) {
    fields.removeAll()
    keys.removeAll()
    bytes.removeAll()
    for path in 0..<ancestors.count {
      append(path, of: values, isNested: values.mayHaveNestedArrays && Self.areNested(ancestors[path], values))
    }
  }

  /// Returns whether an array on the way to a field has an element that is an array.
  @inline(never)
  private static func areNested(_ ancestors: [Int], _ values: borrowing FieldValues) -> Bool {
    ancestors.contains { path in values.hasValue(of: path) { $0.hasElement(where: \.isArray) } }
  }

  @inline(__always)
  private mutating func append(_ path: Int, of values: borrowing FieldValues, isNested: Bool) {
    var field = Field(firstKey: keys.count)
    let start = bytes.count
    var isNested = isNested
    let isOverflow = values.hasValue(of: path) { value in
      guard value.isArray else { return !append(value, in: field, start) }
      field.isMulti = true
      return !appendElements(value, in: field, start, &isNested)
    }
    field.totalSize = bytes.count &- start
    if isOverflow {
      field.isOverflow = true
    } else {
      if keys.count == field.firstKey {
        OrderKey.appendMissing(to: &bytes)
        keys.append(Key(start: start, end: start &+ 1))
        field.totalSize = 1
      }
      if isNested { appendNested() }
      if keys.count > field.firstKey &+ 1 { sortKeys(of: &field) }
    }
    field.count = keys.count &- field.firstKey
    if field.count == 1 { field.maxSize = field.totalSize }
    fields.append(field)
  }

  /// Appends the keys of an array and its elements.
  /// - Parameter isNested: Becomes true if an element is an array.
  /// - Returns: Whether an index takes them.
  @inline(never)
  private mutating func appendElements(
    _ array: SourceValue, in field: Field, _ start: Int, _ isNested: inout Bool
  ) -> Bool {
    append(array, in: field, start)
      && !array.hasElement { element in
        if element.isArray { isNested = true }
        return !append(element, in: field, start)
      }
  }

  @inline(never)
  private mutating func appendNested() {
    let start = bytes.count
    OrderKey.appendNested(to: &bytes)
    keys.append(Key(start: start, end: bytes.count))
  }

  /// Appends the key of a value.
  /// - Parameter start: Where the first key of its field starts.
  /// - Returns: Whether an index takes it, and those of the same field before it.
  @inline(__always)
  private mutating func append(_ value: SourceValue, in field: Field, _ start: Int) -> Bool {
    guard value.text.end <= Self.maxTextSize || value.isNumber, keys.count &- field.firstKey < Self.maxValueCount
    else { return false }
    let keyStart = bytes.count
    OrderKey.append(value, to: &bytes)
    keys.append(Key(start: keyStart, end: bytes.count))
    return bytes.count &- keyStart <= IndexKeyMaker.maxKeySize
      && bytes.count &- start <= IndexKeyMaker.maxTotalKeySize
  }

  /// Sorts the keys of the last field, and removes duplicates.
  @inline(never)
  private mutating func sortKeys(of field: inout Field) {
    bytes.withElements { bytes in
      keys.sort(from: field.firstKey) { left, right in
        bytes.extracting(left.start..<left.end).order(bytes.extracting(right.start..<right.end))
      }
    }
    field.isMulti = field.isMulti || keys.count > field.firstKey + 1
    field.totalSize = 0
    for number in field.firstKey..<keys.count {
      let size = keys[number].end - keys[number].start
      field.totalSize += size
      field.maxSize = max(field.maxSize, size)
    }
  }

  // MARK: Reading

  /// The keys of the field of a path.
  @inline(__always)
  subscript(path: Int) -> Field { fields[path] }

  /// The number of bytes behind a key that `copy` may change.
  static let copySlack = Buffer<UInt8>.slack

  /// Copies a key of a field, or its complement if the field is descending.
  /// - Parameter position: Where the copy starts, to be moved to its end. There is room for the key and `copySlack`.
  @unsafe @inline(__always)
  borrowing func copy(
    _ number: Int, of field: IndexField, to output: UnsafeMutableBufferPointer<UInt8>, at position: inout Int
  ) {
    let key = keys[fields[field.path].firstKey &+ number]
    unsafe bytes.copy(key.start..<key.end, complemented: field.isDescending, to: output, at: position)
    position &+= key.end &- key.start
  }
}
