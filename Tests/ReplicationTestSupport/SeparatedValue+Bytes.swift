import Storage

extension SeparatedValue {
  /// Reads the value.
  package func bytes() throws(SeparatedValueError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: byteCount)
    var span = bytes.mutableSpan
    var raw = unsafe span.mutableBytes
    unsafe try raw.withUnsafeMutableBytes { (buffer) throws(SeparatedValueError) in unsafe try read(into: buffer) }
    return bytes
  }
}
