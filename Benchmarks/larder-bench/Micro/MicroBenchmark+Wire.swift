import Wire

extension MicroBenchmark {
  /// Coding of frames, with 64 in a buffer as a pipelining client sends them.
  static var wire: [MicroBenchmark] {
    [
      MicroBenchmark(name: "decode a get request") { settings in
        decoder(of: try requests(.get, settings)) { bytes, header, offset in
          keep(bytes.extracting(header.body(at: offset)).byteCount)
        }
      },
      MicroBenchmark(name: "decode a put request") { settings in
        decoder(of: try requests(.put, settings)) { bytes, header, offset in
          keep(WriteRecord(bytes.extracting(header.body(at: offset)), at: 0)?.value.count)
        }
      },
      MicroBenchmark(name: "encode a get request") { _ in
        let key = BenchKey.bytes(7)
        return encoder { output, id in
          let start = output.beginRequest(.get, store: 1, id: id)
          unsafe output.append(key.span.bytes)
          output.endFrame(start)
        }
      },
      MicroBenchmark(name: "encode a put request") { settings in
        let (key, value) = (BenchKey.bytes(7), BenchValue.bytes(size: settings.valueSize))
        return encoder { output, id in
          let start = output.beginRequest(.put, store: 1, id: id)
          unsafe output.appendWrite(kind: .single, key: key.span.bytes, value: value.span.bytes)
          output.endFrame(start)
        }
      },
      MicroBenchmark(name: "encode the reply to a get") { settings in
        let value = BenchValue.bytes(size: settings.valueSize)
        return encoder { output, id in
          let start = output.beginReply(id: id)
          unsafe value.withUnsafeBytes { bytes in
            unsafe output.appendEntry(
              kind: .single, revision: 1, key: UnsafeRawBufferPointer(start: nil, count: 0), value: bytes)
          }
          output.endFrame(start)
        }
      },
    ]
  }

  private static let batch = 64

  private static func requests(_ operation: LoadOperation, _ settings: MicroSettings) throws -> [UInt8] {
    let target = LarderTarget(store: "bench", valueSize: settings.valueSize, keysPerRequest: 1)
    guard let template = target.template(for: operation) else { throw BenchError("there is no \(operation)") }
    var output = ByteBuffer()
    for index in 0..<batch {
      let offset = output.count
      output.append(template.bytes)
      target.stamp(&output, at: offset, sequence: UInt32(index), session: 1)
    }
    return output.toArray()
  }

  @inline(__always)
  private static func decoder(
    of frames: [UInt8], _ body: @escaping (RawSpan, FrameHeader, Int) -> Void
  ) -> (Int) -> Void {
    { count in
      let bytes = unsafe frames.span.bytes
      var offset = 0
      for _ in 0..<count {
        if offset == bytes.byteCount { offset = 0 }
        guard case .frame(let header) = FrameScan(bytes, at: offset, maxLength: 1 << 24) else { return }
        body(bytes, header, offset)
        offset += header.frameSize
      }
    }
  }

  @inline(__always)
  private static func encoder(_ body: @escaping (inout ByteBuffer, UInt32) -> Void) -> (Int) -> Void {
    { count in
      var output = ByteBuffer()
      for index in 0..<count {
        if index % batch == 0 { output.removeAll() }
        body(&output, UInt32(truncatingIfNeeded: index))
      }
      keep(output.count)
    }
  }
}
