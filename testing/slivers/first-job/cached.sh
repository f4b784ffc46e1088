set -e
export CCACHE_DIR=/cache/ccache
ccache --zero-stats >/dev/null
git clone -q git://git.example/job.git
make -s -C job CC="ccache gcc"
ccache --print-stats | grep -E "^(direct_cache_hit|cache_miss)"
