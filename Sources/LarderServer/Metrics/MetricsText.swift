import Platform

/// Metrics in the Prometheus text format, version 0.0.4. Names are given without their prefix.
struct MetricsText {
  private(set) var bytes: [UInt8] = []
  private var family = ""

  enum Kind: String {
    case counter, gauge, histogram
  }

  /// Begins a family of samples.
  mutating func begin(_ name: String, _ kind: Kind, _ help: String, prefix: String = "larder_") {
    family = prefix + name
    append("# HELP \(family) \(help)\n# TYPE \(family) \(kind.rawValue)\n")
  }

  mutating func add(_ value: UInt64, _ labels: (String, String)...) {
    addSample("\(value)", suffix: "", labels)
  }

  mutating func add(seconds: Double, _ labels: (String, String)...) {
    addSample("\(seconds)", suffix: "", labels)
  }

  /// Adds the sum of several histograms.
  mutating func add(_ histograms: [DurationHistogram], _ labels: (String, String)...) {
    var count: UInt64 = 0
    for index in 0..<DurationHistogram.classCount {
      count += histograms.reduce(0) { $0 + $1[index] }
      let bound = DurationHistogram.bound(index).map { "\(Double($0) / 1e9)" } ?? "+Inf"
      addSample("\(count)", suffix: "_bucket", labels + [("le", bound)])
    }
    addSample("\(Double(histograms.reduce(0) { $0 + $1.sumNanoseconds }) / 1e9)", suffix: "_sum", labels)
    addSample("\(count)", suffix: "_count", labels)
  }

  private mutating func addSample(_ value: String, suffix: String, _ labels: [(String, String)]) {
    append(family + suffix)
    for (index, label) in labels.enumerated() {
      append("\(index == 0 ? "{" : ",")\(label.0)=\"")
      for byte in label.1.utf8 {
        switch byte {
        case UInt8(ascii: "\\"): append(#"\\"#)
        case UInt8(ascii: "\""): append(#"\""#)
        case UInt8(ascii: "\n"): append(#"\n"#)
        default: bytes.append(byte)
        }
      }
      append("\"")
    }
    append(labels.isEmpty ? " \(value)\n" : "} \(value)\n")
  }

  private mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }
}
