"""What a user wrote, read: words, placements, products, plans, configurations, schedules."""
