import CZlib

/// The format of gzip: RFC 1952.
enum Gzip {
  static func compressed(_ content: [UInt8]) -> [UInt8] {
    var stream = unsafe z_stream()
    // A window of 32 KiB, with the header and the trailer of gzip.
    let windowBits = 15 + 16
    let status = unsafe CZlib_deflateInit2(
      &stream, Z_BEST_COMPRESSION, Z_DEFLATED, Int32(windowBits), 8, Z_DEFAULT_STRATEGY)
    precondition(status == Z_OK, "out of memory")
    defer { unsafe deflateEnd(&stream) }
    var (content, output) = (
      content, [UInt8](repeating: 0, count: Int(unsafe deflateBound(&stream, UInt(content.count))))
    )
    let ending = unsafe content.withUnsafeMutableBufferPointer { input in
      unsafe output.withUnsafeMutableBufferPointer { output in
        unsafe (stream.next_in, stream.avail_in) = (input.baseAddress, UInt32(input.count))
        unsafe (stream.next_out, stream.avail_out) = (output.baseAddress, UInt32(output.count))
        return unsafe deflate(&stream, Z_FINISH)
      }
    }
    precondition(ending == Z_STREAM_END, "deflateBound returns the maximum size")
    unsafe output.removeLast(Int(stream.avail_out))
    return output
  }

  /// Returns the CRC-32 of bytes.
  static func checksum(of content: [UInt8]) -> UInt {
    unsafe content.withUnsafeBufferPointer { unsafe crc32(0, $0.baseAddress, UInt32($0.count)) }
  }
}
