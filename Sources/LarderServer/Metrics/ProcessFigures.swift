import Glibc

/// What Linux reports about this process, under the standard Prometheus names.
struct ProcessFigures {
  private let cpuSeconds: Double
  private let startSeconds: Double
  private let virtualBytes: UInt64
  private let residentBytes: UInt64
  private let threads: UInt64
  private let openDescriptors: UInt64
  private let maxDescriptors: UInt64

  /// The figures now; nil if there is no /proc.
  static var now: ProcessFigures? {
    // The name in parentheses may contain anything. Fields are numbered as in proc(5).
    guard let status = read("/proc/self/stat"), let close = status.lastIndex(of: ")") else { return nil }
    let fields = status[close...].split(separator: " ").dropFirst().map { UInt64($0) ?? 0 }
    guard fields.count > 21 else { return nil }
    func field(_ number: Int) -> UInt64 { fields[number - 3] }
    let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
    let boot = read("/proc/stat")?.split(separator: "\n").first { $0.hasPrefix("btime ") }.flatMap {
      UInt64($0.dropFirst(6))
    }
    var limit = rlimit()
    _ = unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return ProcessFigures(
      cpuSeconds: Double(field(14) + field(15)) / ticks, startSeconds: Double(boot ?? 0) + Double(field(22)) / ticks,
      virtualBytes: field(23), residentBytes: field(24) * UInt64(sysconf(Int32(_SC_PAGESIZE))), threads: field(20),
      openDescriptors: countDescriptors(), maxDescriptors: UInt64(limit.rlim_cur))
  }

  func add(to text: inout MetricsText) {
    text.begin("process_cpu_seconds_total", .counter, "CPU time, user and system.", prefix: "")
    text.add(seconds: cpuSeconds)
    text.begin("process_start_time_seconds", .gauge, "Start time of the process since the Unix epoch.", prefix: "")
    text.add(seconds: startSeconds)
    text.begin("process_virtual_memory_bytes", .gauge, "Virtual memory size.", prefix: "")
    text.add(virtualBytes)
    text.begin("process_resident_memory_bytes", .gauge, "Resident memory size.", prefix: "")
    text.add(residentBytes)
    text.begin("process_threads", .gauge, "Number of threads.", prefix: "")
    text.add(threads)
    text.begin("process_open_fds", .gauge, "Number of open file descriptors.", prefix: "")
    text.add(openDescriptors)
    text.begin("process_max_fds", .gauge, "Maximum number of open file descriptors.", prefix: "")
    text.add(maxDescriptors)
  }

  private static func countDescriptors() -> UInt64 {
    guard let folder = unsafe opendir("/proc/self/fd") else { return 0 }
    defer { unsafe closedir(folder) }
    var count: UInt64 = 0
    while let entry = unsafe readdir(folder) {
      if unsafe entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
    }
    // One of them is the directory's.
    return count - 1
  }

  /// Reads a small file of /proc as text.
  private static func read(_ path: String) -> String? {
    let number = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard number >= 0 else { return nil }
    defer { close(number) }
    var bytes = [UInt8](repeating: 0, count: 64 << 10)
    var filled = 0
    while filled < bytes.count {
      let count = unsafe bytes.withUnsafeMutableBytes {
        unsafe Glibc.read(number, $0.baseAddress! + filled, $0.count - filled)
      }
      guard count > 0 else { break }
      filled += count
    }
    return String(decoding: bytes[..<filled], as: UTF8.self)
  }
}
