#include "bayesopt/cost_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "bayesopt/random.h"
#include "bayesopt/trial_statistics.h"

namespace reprise::bayesopt {
namespace {

// Where imported points lie on the added coordinate.
constexpr float kImported = 1;
constexpr double kLeastDeviation = 1e-6;
// Up to as many groups the prior's lengths are as Options say.
constexpr double kFewGroups = 8;

std::vector<size_t> WithImportGroup(std::vector<size_t> group_of) {
  group_of.push_back(group_of.empty() ? 0 : group_of.back() + 1);
  return group_of;
}

// Distances grow with the root of the number of groups; the prior expects
// lengths to grow with them (C. Hvarfner et al., Vanilla Bayesian optimization
// performs great in high dimensions, 2024).
CostModel::Options ForGroups(CostModel::Options options,
                             const std::vector<size_t>& group_of) {
  const double groups =
      group_of.empty() ? 1 : static_cast<double>(group_of.back() + 1);
  options.priors.length.mean +=
      std::max(0.0, std::log(groups / kFewGroups) / 2);
  return options;
}

// The cheapest half of `count`, and a random half of the others.
std::vector<size_t> CheapAndSome(std::vector<size_t> indices, size_t count,
                                 const std::vector<CostModel::Datum>& data) {
  if (indices.size() <= count) return indices;
  std::stable_sort(indices.begin(), indices.end(), [&](size_t a, size_t b) {
    return data[a].log_cost < data[b].log_cost;
  });
  Random random(9, indices.size());
  for (size_t i = count / 2; i < count; ++i) {
    std::swap(indices[i], indices[i + random.Below(indices.size() - i)]);
  }
  indices.resize(count);
  return indices;
}

std::vector<size_t> Range(size_t begin, size_t end) {
  std::vector<size_t> indices(end - begin);
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

}  // namespace

CostModel::CostModel(std::vector<size_t> group_of, Options options)
    : options_(ForGroups(options, group_of)),
      group_of_(WithImportGroup(std::move(group_of))),
      parameters_(PriorMean(group_of_.back() + 1, options_.priors)) {}

bool CostModel::FitIsDue(size_t own) const {
  if (own < options_.first_fit) return false;
  return static_cast<double>(own) >=
         static_cast<double>(std::max<size_t>(fitted_, 1)) *
             options_.refit_growth;
}

CostModel::Scale CostModel::ScaleOf(const std::vector<Datum>& data) const {
  Scale scale;
  if (data.empty()) return scale;
  std::vector<double> costs;
  for (const Datum& datum : data) costs.push_back(datum.log_cost);
  std::sort(costs.begin(), costs.end());
  const auto at = static_cast<size_t>(options_.winsorise_above *
                                      static_cast<double>(costs.size()));
  scale.cap = costs[std::min(at, costs.size() - 1)];
  double sum = 0;
  for (double& cost : costs) sum += cost = std::min(cost, scale.cap);
  scale.mean = sum / static_cast<double>(costs.size());
  double squares = 0;
  for (const double cost : costs) {
    squares += (cost - scale.mean) * (cost - scale.mean);
  }
  scale.deviation = std::max(
      std::sqrt(squares / static_cast<double>(costs.size())), kLeastDeviation);
  return scale;
}

double CostModel::Standardise(const Scale& scale, double log_cost) {
  return (std::min(log_cost, scale.cap) - scale.mean) / scale.deviation;
}

double CostModel::ToTarget(double log_cost) const {
  return Standardise(scale_, log_cost);
}

// Which own observations are in the process: all, as long as there is room.
void CostModel::Select(const std::vector<Datum>& own) {
  const size_t room = options_.most_points - imported_;
  const size_t latest = std::min(own.size(), room / 4);
  std::vector<size_t> chosen =
      own.size() <= room
          ? Range(0, own.size())
          : CheapAndSome(Range(0, own.size() - latest), room - latest, own);
  if (own.size() > room) {
    for (const size_t i : Range(own.size() - latest, own.size())) {
      chosen.push_back(i);
    }
    std::sort(chosen.begin(), chosen.end());
  }
  order_.assign(chosen.begin(), chosen.end());
  next_ = own.size();
}

// Whether a process over the imported points alone ranks the observations.
bool CostModel::Correlates(const std::vector<Datum>& own,
                           const std::vector<Datum>& imported) const {
  if (imported.size() < 2 || own.size() < options_.least_compared) return true;
  const Scale scale = ScaleOf(imported);
  GaussianProcess process(parameters_, group_of_);
  std::vector<double> targets;
  for (size_t i = 0; i < std::min(imported.size(), options_.most_imported);
       ++i) {
    std::vector<float> point = imported[i].point;
    point.push_back(0);
    process.Append(point);
    targets.push_back(Standardise(scale, imported[i].log_cost));
  }
  process.SetTargets(targets, 0);
  std::vector<double> predicted;
  std::vector<double> measured;
  for (const Datum& datum : own) {
    std::vector<float> point = datum.point;
    point.push_back(0);
    predicted.push_back(process.Predict(point).mean);
    measured.push_back(datum.log_cost);
  }
  return RankCorrelation(predicted, measured) >= options_.least_correlation;
}

void CostModel::Fit(const std::vector<Datum>& own,
                    const std::vector<Datum>& imported) {
  const std::vector<size_t> of_own =
      CheapAndSome(Range(0, own.size()), options_.fit_points, own);
  const Scale import_scale = ScaleOf(imported);
  const auto count = static_cast<Eigen::Index>(of_own.size() + imported_);
  FitData data;
  data.points.setZero(static_cast<Eigen::Index>(width()), count);
  data.targets.resize(count);
  data.measured_variances.resize(count);
  data.group_of = group_of_;
  const double scale = scale_.deviation * scale_.deviation;
  for (Eigen::Index i = 0; i < count; ++i) {
    const bool is_own = i < static_cast<Eigen::Index>(of_own.size());
    const auto at = static_cast<size_t>(i);
    const Datum& datum =
        is_own ? own[of_own[at]] : imported[at - of_own.size()];
    for (size_t c = 0; c < datum.point.size(); ++c) {
      data.points(static_cast<Eigen::Index>(c), i) = datum.point[c];
    }
    if (!is_own) data.points(data.points.rows() - 1, i) = kImported;
    data.targets(i) = is_own ? ToTarget(datum.log_cost)
                             : Standardise(import_scale, datum.log_cost);
    data.measured_variances(i) = datum.log_variance / scale;
  }
  parameters_ =
      FitKernel(data, parameters_, options_.priors, options_.fit_evaluations);
  fitted_ = own.size();
}

void CostModel::AppendDatum(const Datum& datum, bool imported) {
  std::vector<float> point = datum.point;
  point.push_back(imported ? kImported : 0);
  process_->Append(point, datum.log_variance * variance_scale_);
}

void CostModel::Rebuild(const std::vector<Datum>& own,
                        const std::vector<Datum>& imported) {
  process_ = std::make_unique<GaussianProcess>(parameters_, group_of_);
  for (size_t i = 0; i < imported_; ++i) AppendDatum(imported[i], true);
  for (const uint64_t i : order_) AppendDatum(own[i], false);
  kept_ = 0;
  ++generation_;
}

void CostModel::Update(const std::vector<Datum>& own,
                       const std::vector<Datum>& imported,
                       const std::vector<std::vector<float>>& pending) {
  scale_ = ScaleOf(own);
  const bool fit = FitIsDue(own.size());
  if (fit && !dropped_imported_) dropped_imported_ = !Correlates(own, imported);
  const size_t imports =
      dropped_imported_ ? 0 : std::min(imported.size(), options_.most_imported);
  const bool full = imported_ + order_.size() + own.size() - next_ >
                    options_.most_points + options_.most_points / 8;
  const bool reselect = fit || full || imports != imported_;
  if (reselect) {
    imported_ = imports;
    Select(own);
    variance_scale_ = 1 / (scale_.deviation * scale_.deviation);
    if (fit) Fit(own, imported);
  }
  if (reselect || process_ == nullptr) {
    Rebuild(own, imported);
  } else {
    kept_ = imported_ + order_.size();
    process_->Truncate(kept_);
  }
  for (; next_ < own.size(); ++next_) {
    order_.push_back(next_);
    AppendDatum(own[next_], false);
  }
  targets_.clear();
  const Scale import_scale = ScaleOf(imported);
  for (size_t i = 0; i < imported_; ++i) {
    targets_.push_back(Standardise(import_scale, imported[i].log_cost));
  }
  for (const uint64_t i : order_) targets_.push_back(ToTarget(own[i].log_cost));
  process_->SetTargets(targets_, 0);
  best_ = ToTarget(std::min_element(own.begin(), own.end(),
                                    [](const auto& a, const auto& b) {
                                      return a.log_cost < b.log_cost;
                                    })
                       ->log_cost);
  for (const std::vector<float>& point : pending) {
    std::vector<float> extended = point;
    extended.push_back(0);
    targets_.push_back(process_->Predict(extended).mean);
    process_->Append(extended);
    process_->SetTargets(targets_, 0);
  }
}

void CostModel::Save(StateWriter& writer) const {
  writer.Doubles(parameters_.log_lengths);
  writer.F64(parameters_.log_signal_variance);
  writer.F64(parameters_.log_noise_variance);
  writer.U64(fitted_);
  writer.U64(imported_);
  writer.U64(dropped_imported_ ? 1 : 0);
  writer.U64(next_);
  writer.F64(variance_scale_);
  writer.U64(order_.size());
  for (const uint64_t i : order_) writer.U64(i);
}

void CostModel::Restore(StateReader& reader) {
  parameters_.log_lengths = reader.Doubles();
  parameters_.log_signal_variance = reader.F64();
  parameters_.log_noise_variance = reader.F64();
  fitted_ = reader.U64();
  imported_ = reader.U64();
  dropped_imported_ = reader.U64() != 0;
  next_ = reader.U64();
  variance_scale_ = reader.F64();
  order_.resize(reader.Count(8));
  for (uint64_t& i : order_) i = reader.U64();
  process_.reset();
}

bool CostModel::Fits(size_t own, size_t imported) const {
  return parameters_.log_lengths.size() == group_of_.back() + 1 &&
         imported_ <= imported && next_ <= own && fitted_ <= own &&
         std::all_of(order_.begin(), order_.end(),
                     [own](uint64_t i) { return i < own; });
}

}  // namespace reprise::bayesopt
