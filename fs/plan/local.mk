noinst_LIBRARIES += fs/plan/libplan.a

fs_plan_libplan_a_SOURCES = \
	fs/plan/balance.c \
	fs/plan/balance.h \
	fs/plan/batches.c \
	fs/plan/batches.h \
	fs/plan/choose.c \
	fs/plan/deal-state.h \
	fs/plan/deal.c \
	fs/plan/deal.h \
	fs/plan/echo.c \
	fs/plan/echo.h \
	fs/plan/epoch-plan.c \
	fs/plan/epoch-plan.h \
	fs/plan/epoch-run.c \
	fs/plan/exchange.c \
	fs/plan/exchange.h \
	fs/plan/exchange-request.c \
	fs/plan/exchange-request.h \
	fs/plan/list-format.c \
	fs/plan/list-format.h \
	fs/plan/local.c \
	fs/plan/local.h \
	fs/plan/excess.c \
	fs/plan/excess.h \
	fs/plan/order-given.c \
	fs/plan/order-digest.c \
	fs/plan/order-digest.h \
	fs/plan/order.c \
	fs/plan/order.h \
	fs/plan/placement.c \
	fs/plan/placement.h \
	fs/plan/epoch-plan-inside.h \
	fs/plan/plan-request.c \
	fs/plan/plan-request.h \
	fs/plan/random.c \
	fs/plan/random.h \
	fs/plan/stop.h \
	fs/plan/swap-pair.c \
	fs/plan/swap-sort.c \
	fs/plan/swaps-inside.h \
	fs/plan/swaps.c \
	fs/plan/swaps.h \
	fs/plan/uses.c \
	fs/plan/uses.h

EXTRA_DIST += fs/plan/COST
